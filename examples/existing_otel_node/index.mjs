// A program that has OpenTelemetry already, in Node. It knows nothing of Hansard: where its spans go
// is told by the environment alone.
//
//     npm install
//     OTEL_SERVICE_NAME=stock OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 npm start
import { trace } from "@opentelemetry/api";
import { NodeSDK } from "@opentelemetry/sdk-node";

const sdk = new NodeSDK();
sdk.start();

const tracer = trace.getTracer("examples.stock");
const STOCK = { lamp: 3, chair: 0 };

function countStock(item) {
  const attributes = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "count_stock" };
  return tracer.startActiveSpan("execute_tool count_stock", { attributes }, (span) => {
    span.setAttribute("gen_ai.tool.call.arguments", JSON.stringify({ item }));
    span.end();
    return STOCK[item];
  });
}

function answer(item) {
  const attributes = { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "stock" };
  return tracer.startActiveSpan("invoke_agent stock", { attributes }, (span) => {
    const said = `There are ${countStock(item)} left of: ${item}.`;
    const reply = { role: "assistant", parts: [{ type: "text", content: said }] };
    span.setAttribute("gen_ai.output.messages", JSON.stringify([reply]));
    span.end();
    return said;
  });
}

try {
  console.log(answer("lamp"));
} finally {
  await sdk.shutdown(); // also after an error: spans that are queued are sent
}
