/**
 * Treats warnings of the Svelte compiler as errors: roles, labels and keyboard access, unused styles, state that is not
 * reactive.
 */
import { compile } from "svelte/compiler";
import { describe, expect, it } from "vitest";
import { code, type HouseFile } from "./house.ts";

function warnings({ path, text }: HouseFile): string[] {
  return compile(text, { filename: path }).warnings.map(
    ({ message, start }) => `${path}:${start?.line} ${message.split("\n")[0]}`,
  );
}

describe("components", () => {
  it("compile without a warning", () => {
    const components = code.filter(({ path }) => path.endsWith(".svelte"));
    expect(components.length).toBeGreaterThan(0);
    expect(components.flatMap(warnings)).toEqual([]);
  });

  it.each([
    '<img src="ring.png" />',
    "<div onclick={() => {}}>kill</div>",
    "<p>a</p><style>.unused { color: red }</style>",
  ])("%s is rejected", (text) => {
    expect(warnings({ path: "studio/src/a.svelte", text })).not.toEqual([]);
  });
});
