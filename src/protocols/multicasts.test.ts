import { describe, expect, it } from "vitest";
import { protocolNamed, protocolNames } from "./index.ts";
import { multicasts } from "./multicasts.ts";

describe.each(protocolNames)("the registry's line of %s", (name) => {
  const { model, node, variants } = protocolNamed(name);

  it("has the algorithm in every form of it", () => {
    for (const [variant, form] of Object.entries(variants))
      expect([variant, form.model().name]).toEqual([variant, model().name]);
    expect(node().name).toBe(model().name);
  });
});

const askedForMore = Object.entries(multicasts).filter(([, { variants }]) => Object.hasOwn(variants, "every-order"));

describe.each(askedForMore)("%s, asked for every order", (_name, { model, variants }) => {
  const made = variants["every-order"]?.model();

  it("sends the same messages, and only more is asked of its workload", () => {
    expect(made?.shapes).toEqual(model().shapes);
    const asked = made?.properties.map(({ name }) => name) ?? [];
    expect(asked).toEqual(expect.arrayContaining(model().properties.map(({ name }) => name)));
    for (const order of ["C4 FIFO order", "C5 happened-before order", "C6 total order"])
      expect(asked).toContain(`workload: ${order}`);
  });
});
