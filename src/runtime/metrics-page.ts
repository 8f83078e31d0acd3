/** Creates the text for `GET /metrics`. */
import { collectDefaultMetrics, Registry } from "prom-client";
import { type Metric, register } from "./metric-table.ts";

let ofProcess: Registry | undefined;

/**
 * Returns Node's metrics for the process. The observers that collect them cannot be stopped, so all members in a
 * process share one registry.
 */
function processMetrics(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
  }
  return ofProcess;
}

/** Creates the page for these metrics and the metrics of the process. */
export function metricsPage(metrics: readonly Metric[]): { contentType: string; text(): Promise<string> } {
  const registry = new Registry();
  const shared = processMetrics();
  register(registry, metrics);
  return {
    contentType: registry.contentType,
    text: async () => `${await registry.metrics()}${await shared.metrics()}`,
  };
}
