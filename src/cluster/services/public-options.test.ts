/** Checks that every public call rejects every invalid option in the same way, before it takes effect. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Cluster, cluster } from "../../../test/network/joined.ts";
import { UsageError } from "../../core/errors.ts";
import { join } from "../join.ts";
import type { Grant, Member } from "./api.ts";
import { guard } from "./guard.ts";

const noText = [5, null, {}, "", true];
const noFlag = ["true", 1, null, {}];
const noCount = ["5", 0, -1, 1.5, Number.NaN, null, {}];
const noDuration = ["5", 0, -1, Number.NaN, null, {}, 5n];
const noSignal = [5, "abort", null, {}, new AbortController()];
const noObject = [5, "x", null, [], () => {}];
const noFunction = [5, "x", null, {}, undefined];

const folder = mkdtempSync(path(tmpdir(), "coterie-options-"));
let it: Cluster;
let member: Member;
let grant: Grant;
beforeAll(async () => {
  it = await cluster(1);
  member = await it.start(1);
  grant = await member.mutex("held").acquire();
});
afterAll(async () => {
  await it.close();
  rmSync(folder, { recursive: true });
});

const room = () => member.channel("room", { order: "fifo" });
const base = () => ({ id: 1, members: it.members, dataDir: folder });

/** For each call: how to make it with given options, and invalid values for each option. */
const calls: Record<string, { make(options: unknown): unknown; wrong: Readonly<Record<string, readonly unknown[]>> }> =
  {
    join: {
      make: (options) => join({ ...base(), ...(options as object) }),
      wrong: {
        id: ["1", null, undefined, -1, 1.5, 3],
        members: [5, null, undefined, [], { 1: 5 }, { 1: "nowhere" }, { 1: { address: "127.0.0.1:1" } }, {}],
        dataDir: noText,
        cluster: noText,
        tls: [5, null, "on", [], {}, { ca: "a", cert: "b" }, { ca: 1, cert: "b", key: "c" }],
        limits: noObject,
        log: [...noObject, {}, { info() {}, warn() {} }, { info: 1, warn: 2, error: 3 }],
        admin: [5, null, {}, "", "nowhere", "10.0.0.1:80"],
        etcd: [5, null, {}, "", "nowhere", "10.0.0.1:80"],
        registry: [...noObject, {}, { registerMetric() {} }, { registerMetric: 1, removeSingleMetric: 2 }],
        multicast: [...noObject, {}, { group: "239.1.1.1", port: "5", interface: "127.0.0.1" }],
        signal: noSignal,
        faultInjector: noFlag,
      },
    },
    "join limits": {
      make: (limits) => join({ ...base(), limits: limits as object }),
      wrong: {
        maxInstances: noCount,
        maxWaiters: noCount,
        maxFrameBytes: [...noCount, 1],
        maxQueueBytes: noCount,
        handshakeTimeoutMs: noCount,
        maxStrangers: noCount,
      },
    },
    election: {
      make: (options) => member.election("report", options as never),
      wrong: { metadata: [() => {}] },
    },
    channel: {
      make: (options) => member.channel("room", { order: "fifo", ...(options as object) }),
      wrong: { order: [...noText, undefined, "random"], transport: [...noText, "pigeon"] },
    },
    acquire: {
      make: (options) => member.mutex("free").acquire(options as never),
      wrong: { timeoutMs: noDuration, signal: noSignal },
    },
    lead: {
      make: (options) => member.election("report").lead(() => {}, options as never),
      wrong: { signal: noSignal },
    },
    watch: { make: (options) => member.election("report").watch(options as never), wrong: { signal: noSignal } },
    events: { make: (options) => member.events(options as never), wrong: { signal: noSignal } },
    send: { make: (options) => room().send("x", options as never), wrong: { timeoutMs: noDuration, signal: noSignal } },
    read: { make: (options) => room().read(options as never), wrong: { signal: noSignal } },
    views: { make: (options) => room().views(options as never), wrong: { signal: noSignal } },
  };

/** Resolves with the error that a call throws or rejects with. */
async function refusalOf(made: () => unknown): Promise<Error> {
  try {
    await made();
  } catch (error) {
    return error as Error;
  }
  return expect.unreachable("it was accepted");
}

const cases = Object.entries(calls).flatMap(([call, { make, wrong }]) =>
  Object.entries(wrong).flatMap(([option, values]) => values.map((value) => ({ call, make, option, value }))),
);

describe("an invalid option", () => {
  test.each(cases)("$option of $call: $value", async ({ call, make, option, value }) => {
    const error = await refusalOf(() => make({ [option]: value }));
    expect(error).toBeInstanceOf(UsageError);
    expect((error as UsageError).code).toMatch(/^(bad-option|bad-value|bad-limits|bad-multicast)$/);
    const [own = call] = call.split(" ");
    expect(error.message).toMatch(new RegExp(`^expected .*\\b${option}\\b.* of ${own}\\(\\) to (be|have) .*, got `));
  });

  test.each(Object.keys(calls))("is not an object of options, for %s", async (call) => {
    const makes: Record<string, (options: unknown) => unknown> = {
      ...Object.fromEntries(Object.entries(calls).map(([name, { make }]) => [name, make])),
      join: (options) => join(options as never),
      channel: (options) => member.channel("room", options as never),
    };
    for (const value of noObject) {
      const error = await refusalOf(() => makes[call]?.(value));
      expect(error).toBeInstanceOf(UsageError);
      expect(error.message).toMatch(new RegExp(`of ${call.split(" ")[0]}\\(\\) to be an object, got `));
    }
  });

  test.each(Object.keys(calls))("is unknown, for %s, and the error names the nearest one", async (call) => {
    const { make, wrong } = calls[call] as (typeof calls)[string];
    const [known = ""] = Object.keys(wrong);
    const slip = `${known}s`;
    const error = await refusalOf(() => make({ [slip]: 1 }));
    expect(error).toMatchObject({ code: "bad-option" });
    expect(error.message).toContain(`of ${call.split(" ")[0]}() to be among `);
    expect(error.message).toContain(`got "${slip}"; did you mean ${known}?`);
  });
});

describe("other invalid arguments", () => {
  test("join() without arguments is rejected in the same way", async () => {
    const error = await refusalOf(() => (join as () => unknown)());
    expect(error).toMatchObject({
      code: "bad-option",
      message: "expected the options of join() to be an object, got undefined",
    });
  });

  test.each(noFunction)("reject %s as work", async (work) => {
    const uses = [
      () => member.mutex("free").use(work as never),
      () => member.election("report").lead(work as never),
      () => grant.onDeadline(work as never),
    ];
    for (const use of uses) expect(await refusalOf(use)).toMatchObject({ code: "bad-option" });
    expect(member.status().instances.filter(({ waiting }) => waiting > 0)).toEqual([]);
  });

  test.each([5, null, "", "a\nb", "x".repeat(129)])("reject %s as a name", async (name) => {
    for (const use of ["mutex", "election"] as const)
      expect(await refusalOf(() => member[use](name as never, {}))).toMatchObject({ code: "bad-name" });
    const channel = await refusalOf(() => member.channel(name as never, { order: "fifo" }));
    expect(channel).toMatchObject({ code: "bad-name" });
    expect(channel.message).toMatch(/^expected the name to be /);
  });

  test.each(["5", -1, 1.5, null, Number.NaN, 5n])("reject %s as a token", async (token) => {
    expect(await refusalOf(() => guard(token as never))).toMatchObject({ code: "bad-token" });
    expect(await refusalOf(() => guard()(token as never))).toMatchObject({ code: "bad-token" });
  });
});
