import { describe, expect, it } from "vitest";
import { runCommand } from "./command-line.ts";

/** Runs a command and returns its exit code and output. */
async function run(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const said = { stdout: "", stderr: "" };
  const output = (stream: keyof typeof said) => ({
    write: (content: string | Uint8Array) => {
      said[stream] += String(content);
    },
  });
  const streams = { stdout: output("stdout"), stderr: output("stderr") };
  const code = await runCommand({ words, ...streams, usesThreads: false });
  return { code, ...said };
}

describe("coterie exits", () => {
  it("with 0 for help and the version, and with the list of commands without arguments", async () => {
    expect(await run("--version")).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: "" });
    expect(await run()).toEqual(await run("--help"));
  });

  it.each([
    [["upp"], "coterie: unknown command 'upp' (Did you mean up?)\n"],
    [
      ["snapshot", "save", "x", "--from", "a", "--endpoints", "http://127.0.0.1:1"],
      "coterie: expected --from or --endpoints, got both\n",
    ],
    [
      ["lock", "x", "rsync", "--delete", "a", "b"],
      "coterie: unknown option '--delete': put -- before the command, as in coterie lock NAME -- COMMAND\n",
    ],
    [["member", "replace"], "coterie: required option '--data <dir>' not specified\n"],
    [["voting-sets", "0"], 'coterie: expected the number of nodes to be a whole number from 1 to 1000, got "0"\n'],
  ])("with 2 and one sentence for %j", async (words, stderr) => {
    expect(await run(...words)).toEqual({ code: 2, stdout: "", stderr });
  });

  it.each([
    ["member", "list, add, promote, remove, move, change, replace"],
    ["snapshot", "save, show, restore"],
  ])("with 2 and a list of subcommands for %s alone", async (group, names) => {
    const stderr = `coterie: expected one of ${names}: see coterie ${group} --help\n`;
    expect(await run(group)).toEqual({ code: 2, stdout: "", stderr });
    expect((await run(group, "--help")).stdout).toContain(`Examples:\n  $ coterie ${group} `);
  });

  it.each(["lock", "elect"])("with 0 for the help of %s, whose usage has --", async (name) => {
    expect((await run(name, "--help")).stdout).toContain(`Usage: coterie ${name} [options] <name> -- <command...>\n`);
  });

  it("with 0 for the help of member, which describes its commands", async () => {
    expect((await run("member", "--help")).stdout).toContain(
      "Lists and changes the members of a cluster. To replace a dead machine, use\n`coterie member add ID HOST:PORT --replaces ID`.",
    );
  });

  it("in the same way for an unknown command with and without help", async () => {
    expect(await run("help", "foo")).toEqual(await run("foo"));
    expect((await run("help", "foo")).code).toBe(2);
    expect(await run("help")).toEqual(await run("--help"));
    expect(await run("help", "sim")).toEqual(await run("sim", "--help"));
  });

  it("with 1 for a negative verdict, and prints it once", async () => {
    const { code, stdout, stderr } = await run("check", "bully", "--nodes", "3");
    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout.match(/violated/g)).toHaveLength(1);
  });

  it.each([
    [["check", "paxxos"], "paxos"],
    [["sim", "bulli"], "bully"],
    [["protocols", "ricart-agravala"], "ricart-agrawala"],
    [["sim", "ricart"], "ricart-agrawala"],
    [["sim", "bully-a-highest-crashd"], "scenarios/bully-a-highest-crashed.yaml"],
    [["sim", "scenarios/order-demonstraton.yaml"], "order-demonstration.yaml"],
  ])("with 2 and a similar name for %j", async (words, name) => {
    const { code, stderr } = await run(...words);
    expect([code, stderr]).toEqual([2, expect.stringMatching(new RegExp(`\\(did you mean ${name}\\?\\)\n$`))]);
  });
});
