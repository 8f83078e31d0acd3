/** A link may name a scenario alone. Which algorithm that is of stands in the catalogue. */
import type { Catalogue } from "./catalogue.ts";
import type { Words } from "./engine/recipe.ts";

/** The algorithm of a scenario, and the form of it that runs; empty for what is not in the catalogue. */
export function algorithmOf(scenario: string | undefined, catalogue: Catalogue): Words {
  for (const { name, scenarios } of catalogue) {
    const found = scenarios.find(({ file }) => file === scenario);
    if (found !== undefined)
      return { protocol: name, ...(found.variant === undefined ? {} : { variant: found.variant }) };
  }
  return {};
}

/** The same words with the protocol, where a scenario says it. */
export function withProtocol(words: Words, catalogue: Catalogue): Words {
  const { protocol } = words.protocol === undefined ? algorithmOf(words.scenario, catalogue) : {};
  return protocol === undefined ? words : { ...words, protocol };
}
