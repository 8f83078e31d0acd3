/** Checks rules that vitest.config.ts relies on, and rules that keep tests from failing on a busy machine. */
import { type ESTree, Visitor } from "vite";
import { describe, expect, it } from "vitest";
import { type HouseFile, house, isTest, lineAt, parsed } from "./house.ts";

const modules = house.filter(({ path }) => path.endsWith(".ts"));
const helpers = modules.filter(({ path }) => path.startsWith("test/") && !isTest(path));

describe("vitest.config.ts knows", () => {
  it("the helpers that tag tests as long", () => {
    const tagging = modules.filter(({ path, text }) => !isTest(path) && /tags: ?\["long"\]/.test(text));
    expect(tagging.map(({ path }) => path)).toEqual(["test/protocols/sizes.ts"]);
  });

  it("the helpers that count open resources of their process, so that their tests run in a process of their own", () => {
    const counting = helpers.filter(
      ({ path, text }) => path !== SELF && /getActiveResourcesInfo|process\.memoryUsage/.test(text),
    );
    expect(counting.map(({ path }) => path)).toEqual(COUNTING);
  });
});

const SELF = "test/tidy/test-rules.test.ts";
/**
 * The files in test/network are covered by the rule in vitest.config.ts. The other file is a process that tests start.
 */
const COUNTING = ["test/e2e/multicast-process.ts", "test/network/heap.ts", "test/network/open-handles.ts"];

const NOTHING = "expects that nothing happens meanwhile: a stall makes the test weaker, and fails nothing";
const DELAY = "the delay of a disk, a server or a user that the test plays";

/** Files that may sleep for a fixed time, with the reason. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "src/cluster/etcd/grpc-door.test.ts": "compares a count with the count 200 ms before, repeatedly",
  "src/cluster/local/trace-intake.test.ts": DELAY,
  "src/runtime/broadcast.test.ts": "a listener leaves at any moment",
  "src/runtime/journal/disk-journal.test.ts": NOTHING,
  "src/runtime/journal/rewriting.test.ts": DELAY,
  "src/runtime/transport/links.test.ts": NOTHING,
  "src/runtime/transport/udp-multicast.test.ts": NOTHING,
  "test/clients/patroni.test.ts": "each round may take the time of a test",
  "test/clients/postgres-writer.ts": "a client waits before it tries another server",
  "test/docs/screenshots.ts": "takes screenshots, and is not a test",
  "test/e2e/clients.test.ts": NOTHING,
  "test/e2e/joined-process.ts": DELAY,
  "test/e2e/liars.test.ts": "Byzantine nodes run for a while, and nothing is expected of that time",
  "test/network/open-handles.test.ts": "an open timer that never fires",
};

const isLiteral = (node: ESTree.Node | undefined): boolean =>
  node?.type === "Literal" && typeof node.value === "number" && node.value > 0;
const nameOf = ({ callee }: ESTree.CallExpression): string =>
  callee.type === "Identifier"
    ? callee.name
    : callee.type === "MemberExpression" && callee.property.type === "Identifier"
      ? callee.property.name
      : callee.type === "CallExpression"
        ? nameOf(callee)
        : "";
const RUNNERS = new Set([
  "test",
  "it",
  "each",
  "skipIf",
  "runIf",
  "concurrent",
  "poll",
  "waitFor",
  "waitUntil",
  "describe",
]);

/** Finds sleeps of a fixed time outside a polling loop, and numeric deadlines. */
function lucky(file: HouseFile): string[] {
  const found: string[] = [];
  const isReal = /import \{[^}]*setTimeout as sleep[^}]*\} from "node:timers\/promises"/.test(file.text);
  const note = (start: number, what: string): void =>
    void found.push(`${file.path}:${lineAt(file.text, start)} ${what}`);
  let loops = 0;
  const enter = (): void => {
    loops += 1;
  };
  const leave = (): void => {
    loops -= 1;
  };
  new Visitor({
    WhileStatement: enter,
    "WhileStatement:exit": leave,
    DoWhileStatement: enter,
    "DoWhileStatement:exit": leave,
    ForStatement: enter,
    "ForStatement:exit": leave,
    ForOfStatement: enter,
    "ForOfStatement:exit": leave,
    CallExpression(call) {
      const [first, second] = call.arguments as ESTree.Node[];
      const isSleep =
        call.callee.type === "Identifier" &&
        ((isReal && call.callee.name === "sleep" && isLiteral(first) && call.arguments.length === 1) ||
          (call.callee.name === "setTimeout" && isLiteral(second)));
      if (isSleep && loops === 0) note(call.start, "sleeps for a fixed time");
      if (!RUNNERS.has(nameOf(call))) return;
      for (const argument of call.arguments as ESTree.Node[]) {
        if (argument.type === "Literal" && typeof argument.value === "number") note(argument.start, "has a deadline");
        if (argument.type !== "ObjectExpression") continue;
        for (const property of argument.properties)
          if (property.type === "Property" && property.key.type === "Identifier" && property.key.name === "timeout")
            note(property.start, "has a deadline");
      }
    },
  }).visit(parsed(file).program);
  return found;
}

describe("no test depends on the speed of the machine", () => {
  const tests = modules.filter(({ path }) => isTest(path) || (path.startsWith("test/") && path !== "test/patience.ts"));

  it("no test sleeps for a fixed time before an expectation, or has a deadline that is not in test/patience.ts", () => {
    expect(tests.filter(({ path }) => EXCEPTIONS[path] === undefined).flatMap(lucky)).toEqual([]);
  });

  it("every exception is needed", () => {
    const needless = Object.keys(EXCEPTIONS).filter(
      (path) => !tests.some((file) => file.path === path && lucky(file).length > 0),
    );
    expect(needless).toEqual([]);
  });

  it.each([
    'import { setTimeout as sleep } from "node:timers/promises";\nawait sleep(50);',
    "await new Promise((resolve) => setTimeout(resolve, 50));",
    'test("is fast", { timeout: 1_000 }, () => {});',
    'test("is fast", () => {}, 1_000);',
    "await expect.poll(value, { timeout: 1_000 }).toBe(1);",
  ])("rejects %s", (text) => {
    expect(lucky({ path: "a.test.ts", text })).toHaveLength(1);
  });
});
