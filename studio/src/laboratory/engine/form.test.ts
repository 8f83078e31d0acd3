import { describe, expect, test } from "vitest";
import { protocolNamed, protocolNames } from "../../../../src/protocols/index.ts";
import { withOption } from "../option-values.ts";
import { TestedLaboratory } from "./laboratory-under-test.ts";

const laboratory = new TestedLaboratory();

describe("the form of an algorithm", () => {
  test.each(protocolNames)("lets %s accept every option of its form, in every variant", async (protocol) => {
    const { variants, model } = protocolNamed(protocol);
    for (const variant of ["", ...Object.keys(variants)]) {
      const { options } = await laboratory.form(protocol, variant);
      const make = variants[variant]?.model ?? model;
      for (const { path, preset } of options) {
        const given = JSON.parse(withOption("", path, preset)) as object;
        expect(() => make(given), `${variant} ${path.join(".")}`).not.toThrow();
      }
    }
  });

  test("has a field of the right kind for each option, with the parts around the algorithm", async () => {
    const { options } = await laboratory.form("epoch-token-ring");
    expect(options.map(({ path, kind }) => `${path.join(".")}: ${kind}`)).toEqual([
      "workload.stayMs: number",
      "workload.restMs: number",
      "mutex.ring: nodes",
      "mutex.idleMs: number",
      "mutex.leaseMs: number",
      "mutex.renewMs: number",
      "mutex.drift: number",
    ]);
    const raft = (await laboratory.form("raft")).options;
    expect(raft.find(({ path }) => path.join(".") === "log.preVote")).toMatchObject({ kind: "switch", preset: true });
    expect(raft.find(({ path }) => path.join(".") === "machine.kind")?.values).toContain("counter");
    // The log's options belong to the log's part only.
    expect(raft.filter(({ path }) => path.length === 1)).toEqual([]);
  });

  test("leaves out options that a variant sets itself", async () => {
    const names = async (variant: string) =>
      (await laboratory.form("basic-multicast", variant)).options.map(({ path }) => path.join("."));
    expect(await names("")).toContain("multicast.acknowledges");
    expect(await names("acknowledged")).not.toContain("multicast.acknowledges");
  });

  test("changes the run by an option", async () => {
    const words = { protocol: "ricart-agrawala", nodes: "3", request: "0" };
    const end = async (options: string) => (await laboratory.run({ ...words, options })).steps.at(-1)?.at;
    const long = withOption("", ["workload", "stayMs"], 500);
    expect(await end(long)).toBeGreaterThan((await end("")) ?? Infinity);
  });
});
