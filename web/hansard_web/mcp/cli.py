"""`hansard mcp`: the record for MCP clients that start a program and speak with it."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from hansard_compiler.errors import ConfigError
from hansard_web.app.config import Config, WebSettings, parse_token
from hansard_web.cli.base import Command, Misused, read_config, setting_options

if TYPE_CHECKING:
    from hansard_web.mcp.api_client import ApiClient


@click.command(cls=Command)
@setting_options("data", "config", "retention", "policy", "model_server")
@click.option("--url", help="Ask a running server, such as http://127.0.0.1:4318, not a folder.")
@click.option("--token", help="For --url: the token to send. [HANSARD_TOKEN]")
def mcp(*, url: str | None, token: str | None, **arguments: Any) -> None:
    """Offer the record to MCP clients, over stdin and stdout.

    Without --url it works on the data folder, whether a server runs on it or not.

    Example: hansard mcp --url http://127.0.0.1:4318
    """
    try:
        import anyio

        from hansard_web.mcp import server
    except ModuleNotFoundError as missing:
        raise Misused(
            f"the package {missing.name!r} is missing: pip install 'hansard[mcp,server]'"
        ) from None
    source = _folder_api(read_config(**arguments)) if url is None else _url_api(url, token)
    anyio.run(server.serve, source)


@asynccontextmanager
async def _url_api(url: str, token: str | None) -> AsyncIterator[ApiClient]:
    import httpx2

    from hansard_web.mcp.api_client import TIMEOUT_S, ApiClient

    credential = token or os.environ.get("HANSARD_TOKEN")
    authorization = f"Bearer {parse_token(credential).secret}" if credential else ""
    try:
        made = httpx2.AsyncClient(base_url=url.rstrip("/"), timeout=TIMEOUT_S)
    except httpx2.InvalidURL as error:
        raise Misused(f"--url {url!r} is no address: {error}") from None
    async with made as client:
        # A key of this process: proposals of an earlier one cannot be taken up again.
        yield ApiClient(client, secrets.token_bytes(32), authorization)


@asynccontextmanager
async def _folder_api(config: Config) -> AsyncIterator[ApiClient]:
    """Yield the API of an app over the data folder, in this process, with a pipeline of its own."""
    from hansard_collector.pipeline.ingest_queue import Pipeline
    from hansard_collector.pipeline.redaction import RetentionPolicy
    from hansard_compiler.redaction.redactor import Redactor
    from hansard_store.database.data_folder import DataFolder
    from hansard_web.app.application import create_app
    from hansard_web.mcp.api_client import ApiClient, app_client

    folder = DataFolder(config.data)
    try:
        folder.create()
    except OSError as error:
        raise ConfigError(f"cannot use --data {config.data}: {error.strerror}") from None
    pipeline = Pipeline(folder, RetentionPolicy(config.retention, Redactor(folder.key())))
    pipeline.start()
    try:
        settings = WebSettings(
            retention=config.retention, policy=config.policy, model_server=config.model_server
        )
        app = create_app(folder, pipeline, settings)
        with app.state.accounts.working():
            async with app.router.lifespan_context(app), app_client(app) as client:
                yield ApiClient(client, folder.key())
    finally:
        pipeline.close()
