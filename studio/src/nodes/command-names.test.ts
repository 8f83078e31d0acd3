import { expect, test } from "vitest";
import { offeredCommands } from "../../../src/cluster/local/offered-commands.ts";
import { protocolNamed, protocolNames } from "../../../src/protocols/index.ts";
import { commandNames } from "./command-names.ts";

/** Returns command names as listed by a member's status. */
function offered(protocol: string): string[] {
  const shapes = protocolNamed(protocol).node().shapes.command ?? {};
  const fields = Object.entries(shapes as Record<string, Record<string, { kind?: string; variants?: object }>>).flatMap(
    ([type, { body, ...rest }]): [string, string[]][] =>
      body?.kind !== "variants"
        ? [[type, Object.keys(rest)]]
        : Object.entries(body.variants as Record<string, { fields?: object }>).map(([inner, shape]) => [
            `${type}.${inner}`,
            Object.keys(shape.fields ?? {}),
          ]),
  );
  return offeredCommands(Object.fromEntries(fields));
}

const texts = (protocol: string) => commandNames(offered(protocol)).map(({ text }) => text);

const first = {
  call: "Call an election",
  request: "Request",
  send: "Send",
  propose: "Propose",
} as const;

test.each(protocolNames)("%s lists its main command first, and no two commands of the same name", (protocol) => {
  const { verb } = protocolNamed(protocol).family;
  if (verb !== null) expect(texts(protocol)[0]).toBe(first[verb]);
  const names = commandNames(offered(protocol)).map(({ text, part }) => `${text} ${part}`);
  expect(new Set(names).size).toBe(names.length);
});

test("offers votes and lookups, but no internal commands", () => {
  expect(texts("two-phase-commit")).toEqual(["Propose", "Vote no", "Vote yes"]);
  expect(texts("super-peer-dht")).toEqual(["Call an election", "Leave", "Find a key"]);
  expect(texts("maekawa")).toEqual(["Request", "Request, then release", "Release"]);
});

test("shows a command without a title by its own name, with its part if two are alike", () => {
  expect(commandNames(["one.rest", "two.rest", "ponder"])).toEqual([
    { command: "one.rest", text: "Rest", part: "one" },
    { command: "two.rest", text: "Rest", part: "two" },
    { command: "ponder", text: "Ponder", part: null },
  ]);
});

test("handles a command called constructor", () => {
  expect(commandNames(["constructor", "workload.toString"])).toEqual([
    { command: "constructor", text: "Constructor", part: null },
    { command: "workload.toString", text: "ToString", part: null },
  ]);
});
