/** A scenario whose steps are taken under another protocol that it names. */
import { UsageError, unexpected } from "../../core/errors.ts";
import type { Scenario } from "./schema.ts";

/** @throws UsageError for a protocol that the scenario does not name */
export function asVariant(scenario: Scenario, name: string): Scenario {
  if (name === scenario.protocol) return scenario;
  const expect = Object.hasOwn(scenario.variants, name) ? scenario.variants[name] : undefined;
  if (expect !== undefined) return { ...scenario, protocol: name, expect, variants: {} };
  const known = [scenario.protocol, ...Object.keys(scenario.variants)];
  throw new UsageError(
    "unknown-protocol",
    unexpected("the protocol", `one that the scenario names: ${known.join(", ")}`, name),
  );
}
