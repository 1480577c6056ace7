"""The receivers: OTLP over HTTP and over gRPC, each handing raw bytes to the pipeline."""
