/** What a folder promises that is made out of others, record by record: of journals that are written here as members leave them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Context } from "../core/protocol.ts";
import { natural, type Shape, type ShapeNode, struct, variants } from "../core/shape.ts";
import { epochBully } from "../protocols/election/epoch-bully/epoch-bully.ts";
import type { EpochBully } from "../protocols/election/epoch-bully/vocabulary.ts";
import { type AnyProtocol, viewSynchrony } from "../protocols/index.ts";
import { type Views, views } from "../protocols/membership/views/agreement.ts";
import { coordinationService } from "../protocols/service/coordination-service/coordination-service.ts";
import { openJournal } from "../runtime/journal/disk-journal.ts";
import { type GroupRecord, groupShape } from "../runtime/journal/group-memory.ts";
import { protocolSlot } from "../runtime/journal/protocol-slot.ts";
import { realPlatform } from "../runtime/platform/real.ts";
import { replaceMember } from "./replace-member.ts";
import { settingShape } from "./services/algorithms.ts";
import { ViewFloors } from "./services/view-floors.ts";

type Promised = EpochBully["record"];
const promised = variants<Promised>({ promised: { epoch: natural, to: natural } });
const floor = struct({ epoch: natural });
const viewFloor = struct({ incarnation: natural, view: natural });
const asked = variants<{ type: "asked"; time: number }>({ asked: { time: natural } });
const runs = struct({ below: natural });

/** What a member's journal holds besides its group, by slot. */
type Slots = Readonly<Record<string, readonly [shape: ShapeNode, ...records: readonly object[]]>>;

let root = "";
beforeEach(() => {
  root = mkdtempSync(path(tmpdir(), "coterie-promises-"));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(root, { recursive: true, force: true });
});
const folderOf = (id: number): string => path(root, String(id));

const open = (id: number) =>
  openJournal(folderOf(id), {
    platform: realPlatform,
    owner: `member ${id} of tests`,
    log: { warn() {} },
    onFailure() {},
  });

async function keep(id: number, slots: Slots, others = [0, 1, 2].filter((node) => node !== id)): Promise<void> {
  const journal = await open(id);
  const known = others.map((node) => ({ node, journal: `journal-${node}` }));
  const group = journal.slot<GroupRecord>("group", groupShape);
  group.append({ journal: `journal-${id}`, members: [0, 1, 2], others: known });
  journal.slot("instances", settingShape);
  for (const [name, [shape, ...records]] of Object.entries(slots)) {
    const slot = journal.slot<never>(name, shape);
    for (const record of records) slot.append(record as never);
  }
  await journal.close();
}

const replace = (id = 2): Promise<void> => {
  const from = [0, 1, 2].filter((other) => other !== id).map(folderOf);
  return replaceMember({ id, folder: folderOf(id), from, log: { warn() {} } });
};

/** What the new folder has in one of its slots. */
async function made<R>(name: string, shape: Shape<R>, id = 2): Promise<readonly R[]> {
  const journal = await open(id);
  const { records } = journal.slot(name, shape);
  await journal.close();
  return records;
}

const lead = (epoch: number, to: number): Promised => ({ type: "promised", epoch, to });

describe("a folder that is made of others", () => {
  test("binds its member against every candidate when it starts: in its lost life it may have confirmed a leader's lease", async () => {
    await keep(0, { leadership: [promised, lead(7, 0)] });
    await keep(1, { leadership: [promised, lead(6, 2), lead(8, 1)] });
    await replace();
    const [record] = await made("leadership", promised);
    expect(record?.epoch).toBe(8);
    const sent: unknown[] = [];
    const timers: string[] = [];
    const nothing = (): void => {};
    const ctx = {
      self: 2,
      peers: [0, 1],
      send: (to: number, { type }: { type: string }) => sent.push([to, type]),
      setTimer: (timer: string) => timers.push(timer),
      ...{ broadcast: nothing, cancelTimer: nothing, compact: nothing, emit: nothing },
    } as unknown as Context<EpochBully>;
    const bully = epochBully();
    const state = bully.init(2, [0, 1]);
    bully.replay.promised(state, record as Promised);
    bully.start?.(state, ctx);
    for (const candidate of [0, 1])
      bully.receive.requestVote(state, candidate, { type: "requestVote", epoch: 99, released: null }, ctx);
    expect([sent, timers]).toEqual([[], ["bound"]]);
    bully.timeout.bound(state, ctx);
    bully.receive.requestVote(state, 1, { type: "requestVote", epoch: 99, released: null }, ctx);
    expect(sent).toEqual([[1, "voteGranted"]]);
  });

  test("is bound by what was promised in the same algorithm, and by no other: epochs of locks end far below those of elections", async () => {
    await keep(0, {
      leadership: [promised, lead(4, 0)],
      "floor/epoch-bully": [floor, { epoch: 2 ** 40 }],
      "mutex/epoch-token-ring/stamps": [promised, lead(9, 0)],
    });
    await keep(1, {
      leadership: [promised, lead(5, 1)],
      "election/epoch-bully/report": [promised, lead(2 ** 41, 1)],
      "floor/epoch-token-ring": [floor, { epoch: 3 }],
    });
    await replace();
    expect(await made("leadership", promised)).toMatchObject([{ epoch: 5 }]);
    expect(await made("floor/epoch-bully", floor)).toEqual([{ epoch: 2 ** 41 }]);
    expect(await made("floor/epoch-token-ring", floor)).toEqual([{ epoch: 9 }]);
  });

  test("knows how far channels had come that are put away, and what locks of Ricart and Agrawala had asked for", async () => {
    const name = "mutex/ricart-agrawala/door";
    await keep(0, {
      "floor/views": [viewFloor, { incarnation: 3, view: 16 }, { incarnation: 3, view: 48 }],
      [name]: [asked, { type: "asked", time: 40 }],
    });
    await keep(1, {
      "floor/views": [viewFloor, { incarnation: 9, view: 32 }],
      [name]: [asked, { type: "asked", time: 30 }, { type: "asked", time: 41 }],
    });
    await replace();
    const [views] = await made("floor/views", viewFloor);
    expect(views?.view).toBe(48);
    expect(views?.incarnation).toBeGreaterThan(9);
    const [{ time } = { time: 0 }] = await made(name, asked);
    expect(time).toBeGreaterThanOrEqual(41);
  });

  test("has the longest log, votes in no term in which its member may have voted, and asks in a life of its own", async () => {
    const record = variants<{ type: string; body: object }>(coordinationService().shapes.record ?? {});
    const log = (body: object) => ({ type: "log", body });
    const noops = (...terms: number[]) =>
      log({ type: "appended", entries: terms.map((term) => ({ type: "noop", term })) });
    const voted = (term: number) => log({ type: "voted", term, votedFor: 0 });
    await keep(0, { "service/log": [record, voted(2), noops(1, 1, 2), voted(5)] });
    const cut = log({ type: "truncated", lastIndex: 2 });
    await keep(1, { "service/log": [record, noops(1, 1, 1, 1), cut, voted(3), noops(3)] });
    const now = Date.now();
    await replace();
    expect(await made("service/log", record)).toEqual([
      ...[noops(1, 1, 1, 1), cut, voted(3), noops(3)],
      log({ type: "voted", term: 1_005, votedFor: 2 }),
    ]);
    const [life] = await made("service/session", record);
    expect(life).toMatchObject({ type: "session", body: { type: "life", run: Math.floor(now / 86_400_000) } });
    expect((life as { body: { life: number } }).body.life).toBeGreaterThanOrEqual(now);
  });

  test("begins above its lost life in channels that none of the others knows, too", async () => {
    vi.setSystemTime(1_700_000_000_000);
    await keep(0, {});
    await keep(1, {});
    await replace();
    const [views] = await made("floor/views", viewFloor);
    expect(views?.view).toBe(0);
    expect(views?.incarnation).toBeGreaterThan(1_700_000_000_000);
    const journal = await open(2);
    const channel = viewSynchrony() as unknown as AnyProtocol;
    const slot = protocolSlot(journal, "channel/new", channel);
    new ViewFloors(journal).begin(channel, slot);
    expect(JSON.stringify(slot.records)).toContain(`"incarnation":${views?.incarnation}`);
    await journal.close();
  });

  test("asks for locks of Ricart and Agrawala with times above all of its lost life, which the others may have forgotten", async () => {
    const name = "mutex/ricart-agrawala/door";
    await keep(0, { [name]: [asked] });
    await keep(1, { [name]: [asked, { type: "asked", time: 40 }] });
    vi.setSystemTime(1_700_000_000_000);
    await replace();
    const [{ time } = { time: 0 }] = await made(name, asked);
    expect(time).toBeGreaterThan(1_700_000_000_000);
    const MEMBERS = 256;
    expect(Number.isSafeInteger(time * MEMBERS)).toBe(true);
  });

  test.each([
    [0, "the lowest member does not propose the first view of a channel again", 3],
    [2, "others have promised what the others have", 0],
  ] as const)("made for %i: %s", async (id, _what, expected) => {
    const name = "channel/view-synchrony/room";
    const shape = variants<Views["record"]>(views().shapes.record);
    const empty = { number: 0, members: [], cut: [] };
    const register = { type: "register", incarnation: 1, promised: 0, accepted: null, view: empty };
    for (const other of [0, 1, 2]) if (other !== id) await keep(other, { [name]: [shape, register] });
    await replace(id);
    expect(await made(name, shape, id)).toMatchObject([{ promised: expected, accepted: null }]);
  });

  test("numbers its requests above all of an earlier replacement's, though that was a moment ago and ran many times", async () => {
    await keep(0, {});
    await keep(1, {});
    vi.setSystemTime(1_700_000_000_000);
    await replace();
    const [before] = await made("runs", runs);
    rmSync(folderOf(2), { recursive: true });
    vi.setSystemTime(1_700_000_060_000); // A minute later.
    await replace();
    const [after] = await made("runs", runs);
    const STARTS = 50; // Of which each takes a million.
    expect(after?.below).toBeGreaterThan((before?.below ?? 0) + STARTS * 1_000_000);
    expect(Number.isSafeInteger(2 * (after?.below ?? 0))).toBe(true);
  });

  test("needs others that have met all members, and it is said what to do where one has not", async () => {
    await keep(0, {});
    await keep(1, {}, []);
    await expect(replace()).rejects.toThrow(
      `expected the journal in ${folderOf(1)} to know the others, and it does not: member 1 has not met all of them yet. Stop all members, empty all their folders and start them together, as a new cluster`,
    );
  });
});
