/**
 * Describes an algorithm based on its header and the registry: source, assumptions, properties, costs, options,
 * variants.
 */
import type { Property, Vocabulary } from "../core/protocol.ts";
import { protocolNamed } from "../protocols/index.ts";
import { declaredOptions } from "../protocols/options.ts";

/** The numbers of nodes for which costs are computed. */
export const COST_SIZES = [3, 5, 8, 16, 64];

/** The description of an algorithm, as plain data. */
export interface Described {
  readonly name: string;
  readonly family: string;
  readonly summary: string;
  readonly source: string;
  readonly assumes: readonly string[];
  readonly properties: readonly { readonly name: string; readonly claim: string; readonly when: string }[];
  readonly costs: readonly { readonly when: string; readonly messages: Readonly<Record<number, number>> }[];
  readonly options: readonly { readonly name: string; readonly default: unknown; readonly help: string }[];
  readonly variants: readonly { readonly name: string; readonly summary: string }[];
}

/** Describes an algorithm. @throws UsageError if the algorithm is not registered */
export function described(name: string): Described {
  const { family, summary, model, variants } = protocolNamed(name);
  const { source, assumes, properties, costs } = model();
  return {
    name,
    family: family.name,
    summary,
    source,
    assumes,
    properties: properties.map((property: Property<Vocabulary>) => ({
      name: property.name,
      claim: property.claim,
      when: property.when,
    })),
    costs: costs.map(({ when, messages }) => ({
      when,
      messages: Object.fromEntries(COST_SIZES.map((nodes) => [nodes, messages(nodes)])),
    })),
    options: declaredOptions(model).map(({ path, name: option, default: preset, help }) => ({
      name: [...path, option].join("."),
      default: preset,
      help,
    })),
    variants: Object.entries(variants).map(([variant, form]) => ({ name: variant, summary: form.summary })),
  };
}
