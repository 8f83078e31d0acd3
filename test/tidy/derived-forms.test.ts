/**
 * Ensures that reactions to an algorithm's events are wires, declared next to the algorithm, so that the checked code
 * is the running code. A file of `cluster/services` reacts by hand if it compares the type of something with the name
 * of an event, has a case for one, or looks up a `type` in a table with a function under such a name. A table that is
 * passed to `by(…)` is allowed, because it contains the commands of a wire. The list of current exceptions may only
 * become shorter.
 */
import { type ESTree, Visitor } from "vite";
import { describe, expect, it } from "vitest";
import { code, type HouseFile, isTest, parsed } from "./house.ts";

/**
 * The events that each file looks for. Facades of `join()` pass them to the program, and `group-channel.ts` delivers
 * messages from the log.
 */
const allowed: Readonly<Record<string, readonly string[]>> = {
  "src/cluster/services/channel-state.ts": ["founded", "placed", "state", "waiting", "wanted"],
  "src/cluster/services/local-channel.ts": [
    "blocked",
    "delivered",
    "ejected",
    "installed",
    "left",
    "refused",
    "resumed",
    "stable",
    "stalled",
  ],
  "src/cluster/services/group-channel.ts": ["said"],
  "src/cluster/services/state/log-election.ts": ["confirmed", "lost", "restored"],
  "src/cluster/services/state/service-host.ts": ["began", "clientAnswered", "confirmed", "led", "lost", "refused"],
  "src/cluster/services/member-detector.ts": ["suspected"],
  "src/cluster/services/member-directory.ts": ["members"],
  "src/cluster/services/state/shared-state.ts": ["led", "lost"],
  "src/cluster/services/state/arrivals.ts": ["ended", "lost", "passed", "restored"],
  "src/cluster/services/state/waits.ts": ["confirmed", "lost", "restored"],
  "src/cluster/services/state/watch.ts": ["restored"],
};

/** Returns the events of algorithms: the `type` of each argument of `emit`. */
function emitted(files: readonly HouseFile[]): Set<string> {
  const algorithms = files.filter(({ path }) => path.startsWith("src/protocols/") && !isTest(path));
  return new Set(
    algorithms.flatMap(({ text }) => [...text.matchAll(/\bemit\(\{ type: "(\w+)"/g)].map(([, type]) => type as string)),
  );
}

/** Returns names that a file compares with a `type`, has a case for, or has a function under. */
function lookedFor(file: HouseFile): Set<string> {
  const found = new Set<string>();
  const text = (node: ESTree.Node | null): string | null =>
    node?.type === "Literal" && typeof node.value === "string" ? node.value : null;
  const isType = (node: ESTree.Node): boolean =>
    (node.type === "Identifier" && node.name === "type") ||
    (node.type === "MemberExpression" && node.property.type === "Identifier" && node.property.name === "type");
  const commands = new Set<ESTree.Node>();
  const inTables = new Set<string>();
  let looksUp = false;
  new Visitor({
    MemberExpression({ computed, property }) {
      if (computed && isType(property)) looksUp = true;
    },
    CallExpression({ callee, arguments: [table] }) {
      if (callee.type === "Identifier" && callee.name === "by" && table !== undefined) commands.add(table);
    },
    ObjectExpression(table) {
      if (commands.has(table)) return;
      for (const property of table.properties) {
        if (property.type !== "Property" || property.key.type !== "Identifier") continue;
        const { type } = property.value;
        if (type === "ArrowFunctionExpression" || type === "FunctionExpression") inTables.add(property.key.name);
      }
    },
    BinaryExpression({ left, right }) {
      for (const [one, other] of [
        [left, right],
        [right, left],
      ] as const) {
        const name = text(one);
        if (name !== null && isType(other)) found.add(name);
      }
    },
    SwitchCase({ test }) {
      const name = text(test);
      if (name !== null) found.add(name);
    },
  }).visit(parsed(file).program);
  return looksUp ? new Set([...found, ...inTables]) : found;
}

/** Returns the files of `cluster` with the events that they look for. */
function byHand(files: readonly HouseFile[], events: ReadonlySet<string>): Record<string, string[]> {
  const inCluster = files.filter(({ path }) => path.startsWith("src/cluster/services/") && !isTest(path));
  const found = inCluster.map((file): [string, string[]] => [
    file.path,
    [...lookedFor(file)].filter((name) => events.has(name)).sort(),
  ]);
  return Object.fromEntries(found.filter(([, names]) => names.length > 0));
}

describe("derived forms", () => {
  const events = emitted(code);

  it("no file of the cluster reacts to another event by hand", () => {
    expect([...events]).toEqual(expect.arrayContaining(["elected", "entered", "delivered", "suspected"]));
    const more = Object.entries(byHand(code, events)).flatMap(([path, names]) =>
      names.filter((name) => !allowed[path]?.includes(name)).map((name) => `${path} reacts to ${name}: make it a wire`),
    );
    expect(more).toEqual([]);
  });

  it.each([
    'if (event.type === "elected") serve();',
    'const isOther = "elected" !== type;',
    'switch (event.type) { case "elected": serve(); }',
    "const on = { elected: () => serve() }; on[event.type]();",
    "const on = { elected() { serve(); } }; const take = ({ type }) => on[type]();",
  ])("%s is found", (text) => {
    expect(byHand([{ path: "src/cluster/services/a.ts", text }], new Set(["elected"]))).toEqual({
      "src/cluster/services/a.ts": ["elected"],
    });
  });

  it("commands of a wire are allowed", () => {
    const text = "const take = by({ elected: ({ leader }) => serve(leader) }); take[event.type];";
    expect(byHand([{ path: "src/cluster/services/a.ts", text }], new Set(["elected"]))).toEqual({});
  });
});
