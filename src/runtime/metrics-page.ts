/** The text of `GET /metrics`. */
import { collectDefaultMetrics, Registry } from "prom-client";
import { type Metric, register } from "./metric-table.ts";

let ofProcess: Registry | undefined;

/** Node's metrics of the process. Their observers cannot be stopped, so all members of a process share one set. */
function processMetrics(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
  }
  return ofProcess;
}

export function metricsPage(metrics: readonly Metric[]): { contentType: string; text(): Promise<string> } {
  const registry = new Registry();
  const shared = processMetrics();
  register(registry, metrics);
  return {
    contentType: registry.contentType,
    text: async () => `${await registry.metrics()}${await shared.metrics()}`,
  };
}
