/** The steps of a scenario under another protocol than the one that it was written for. */
import { UsageError } from "../../../../src/core/errors.ts";
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import { hasToStart, protocolNamed } from "../../../../src/protocols/index.ts";

/**
 * Network, faults, commands and the options of the workload stay; what belongs to the protocol alone (its own options) does not,
 * nor what was expected of it.
 * @throws UsageError where the scenario begins with states of its own
 */
export function sameSteps(
  scenario: Scenario,
  protocol = scenario.protocol,
  variant = protocol === scenario.protocol ? scenario.variant : undefined,
): Scenario {
  if (protocol === scenario.protocol && variant === scenario.variant) return scenario;
  const { variant: _variant, options, begin, expect: _expect, until, ...kept } = scenario;
  if (Object.keys(begin.states).length > 0)
    throw new UsageError(
      "bad-scenario",
      `expected steps that any protocol can take: this scenario begins with states of ${scenario.protocol}`,
    );
  const mustStart = hasToStart(protocol, variant ?? null);
  const end = until ?? (mustStart ? protocolNamed(protocol).presentation.untilMs : undefined);
  return {
    ...kept,
    protocol,
    ...(variant === undefined ? {} : { variant }),
    options: options.workload === undefined ? {} : { workload: options.workload },
    begin: mustStart ? { ...begin, nodes: "started" } : begin,
    expect: { violated: [] },
    variants: {},
    ...(end === undefined ? {} : { until: end }),
  };
}
