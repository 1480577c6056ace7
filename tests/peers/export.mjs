// Sends one trace, two logs and one metric through the stock exporter that is named, with the
// settings that a user would set in the environment, and prints what it sent as JSON.
import { ROOT_CONTEXT, SpanStatusCode, trace } from "@opentelemetry/api";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";

const protocol = process.argv[2];
const resource = resourceFromAttributes({ "service.name": `node-${protocol}` });
const exporters = {
  grpc: "@opentelemetry/exporter-trace-otlp-grpc",
  "http-json": "@opentelemetry/exporter-trace-otlp-http",
  "http-protobuf": "@opentelemetry/exporter-trace-otlp-proto",
};

const { OTLPTraceExporter } = await import(exporters[protocol]);
const provider = new BasicTracerProvider({
  resource,
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
const tracer = provider.getTracer("peers", "1.0");

const agent = tracer.startSpan(
  "invoke_agent peer",
  { attributes: { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "peer" } },
  ROOT_CONTEXT,
);
const inside = trace.setSpan(ROOT_CONTEXT, agent);
const call = tracer.startSpan(
  "chat gpt-4o-mini",
  {
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "gpt-4o-mini",
      "gen_ai.usage.input_tokens": 120,
      "gen_ai.usage.output_tokens": 30,
      "gen_ai.input.messages": JSON.stringify([
        { role: "user", parts: [{ type: "text", content: "grüß dich, 世界" }] },
      ]),
    },
  },
  inside,
);
call.end();
const tool = tracer.startSpan(
  "execute_tool look",
  { attributes: { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look" } },
  inside,
);
tool.recordException(new Error("nothing there"));
tool.setStatus({ code: SpanStatusCode.ERROR, message: "nothing there" });
tool.end();
agent.end();
await provider.shutdown();

if (protocol !== "grpc") {
  await sendLogs(inside);
  await sendMetrics();
}

const { traceId } = agent.spanContext();
console.log(JSON.stringify({ traceId, spans: 3, input: 120, output: 30 }));

async function sendLogs(context) {
  const { LoggerProvider, BatchLogRecordProcessor } = await import("@opentelemetry/sdk-logs");
  const { OTLPLogExporter } = await import("@opentelemetry/exporter-logs-otlp-http");
  const logs = new LoggerProvider({
    resource,
    processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter() })],
  });
  const logger = logs.getLogger("peers");
  logger.emit({ body: "looked twice", severityNumber: 9, context });
  logger.emit({ body: "about nothing", severityNumber: 13 });
  await logs.shutdown();
}

async function sendMetrics() {
  const { MeterProvider, PeriodicExportingMetricReader } = await import(
    "@opentelemetry/sdk-metrics"
  );
  const { OTLPMetricExporter } = await import("@opentelemetry/exporter-metrics-otlp-proto");
  const provider = new MeterProvider({
    resource,
    readers: [new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter() })],
  });
  provider.getMeter("peers").createCounter("looks").add(2, { where: "here" });
  await provider.shutdown();
}
