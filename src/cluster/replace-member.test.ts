/**
 * Checks that a member that has lost its folder can rejoin with a new one. The new folder is created from the other
 * members' folders and keeps the promises in all of them.
 */

import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { freePorts } from "../../test/network/free-ports.ts";
import { PATIENCE } from "../../test/patience.ts";
import { type Shape, type ShapeNode, variants } from "../core/shape.ts";
import { coordinationService } from "../protocols/service/coordination-service/coordination-service.ts";
import { type MemberList, memberListShape } from "../protocols/service/coordination-service/member-words.ts";
import { openJournal } from "../runtime/journal/disk-journal.ts";
import { type GroupRecord, groupShape } from "../runtime/journal/group-memory.ts";
import { createLog } from "../runtime/log.ts";
import { realPlatform } from "../runtime/platform/real.ts";
import { join } from "./join.ts";
import { replaceMember } from "./replace-member.ts";
import type { Member } from "./services/api.ts";

const root = mkdtempSync(path(tmpdir(), "coterie-replace-"));
const running = new Set<Member>();
const folderOf = (id: number): string => path(root, String(id));
const log = createLog(() => {});

afterEach(async () => {
  await Promise.all([...running].map((member) => member.leave()));
  running.clear();
  rmSync(root, { recursive: true, force: true });
});

async function start(members: Readonly<Record<number, string>>, ids: readonly number[]): Promise<Member[]> {
  const joined = await Promise.all(ids.map((id) => join({ id, members, dataDir: folderOf(id), log })));
  for (const member of joined) running.add(member);
  return joined;
}

async function leave(...members: readonly Member[]): Promise<void> {
  await Promise.all(members.map((member) => member.leave()));
  for (const member of members) running.delete(member);
}

/**
 * Runs three members that connect, grant a lock and a leadership, and use a channel. Then all stop, and the third loses
 * its folder.
 */
async function bereft() {
  const ports = await freePorts(3);
  const members = Object.fromEntries(ports.map((port, index) => [index + 1, `127.0.0.1:${port}`]));
  const all = await start(members, [1, 2, 3]);
  const rooms = all.map((member) => member.channel<string>("room", { order: "total" }));
  for await (const { members: inside } of rooms[0]?.views() ?? []) if (inside.length === 3) break;
  const tokens: number[] = [];
  for (const member of all) tokens.push(await member.mutex("invoice").use(({ token }) => token));
  tokens.sort((a, b) => a - b);
  const led = await (all[2] as Member).election("report").lead(({ token }) => token);
  await leave(...all);
  rmSync(folderOf(3), { recursive: true });
  return { members, highest: tokens.at(-1) as number, led };
}

/** Copies a folder, and changes it as if the member had learned a later member list. */
async function withLaterList(folder: string, copy: string): Promise<void> {
  cpSync(folder, copy, { recursive: true });
  const journal = await openJournal(copy, {
    platform: realPlatform,
    owner: "member 1 of coterie",
    log,
    onFailure() {},
  });
  const list: MemberList = { revision: 7, founders: [], members: [], removed: [], voters: [], learners: [] };
  journal.slot<MemberList>("members", memberListShape).append(list);
  await journal.close();
}

describe("a member whose folder is lost", () => {
  test("takes part again with a folder made from the others', and all tokens keep growing", {
    tags: ["long"],
  }, async () => {
    const { members, highest, led } = await bereft();
    await replaceMember({ id: 3, folder: folderOf(3), from: [folderOf(1), folderOf(2)], log });
    // Members 1 and 3 are a majority only if the new folder is accepted.
    const [one, three] = (await start(members, [1, 3])) as [Member, Member];
    expect(await three.mutex("invoice").use(({ token }) => token)).toBeGreaterThan(highest);
    expect(await three.election("report").lead(({ token }) => token)).toBeGreaterThan(led);
    expect([one.status().refusals, three.status().refusals]).toEqual([[], []]);
    const room = three.channel<string>("room", { order: "total" });
    await vi.waitFor(() => expect(room.status.members).toContain(3), PATIENCE);
  });

  test("is refused until then, and too few folders are refused with a sentence", async () => {
    const { members } = await bereft();
    const replace = (id: number, folder: string, ...from: number[]): Promise<void> =>
      replaceMember({ id, folder, from: from.map(folderOf), log });
    await expect(replace(3, folderOf(3), 1)).rejects.toThrow(
      "expected the folders of 2 of the 3 members, got the folders of 1: fewer folders may not contain all promises of member 3. If more folders are lost, save the rest with `coterie snapshot save FILE --from FOLDER` and create a new cluster from it",
    );
    await expect(replace(3, folderOf(3), 1, 1)).rejects.toMatchObject({ code: "cannot-replace" });
    await expect(replace(4, folderOf(4), 1, 2)).rejects.toThrow("expected one of the members 1, 2, 3, got 4");
    await expect(replace(2, path(root, "other"), 1, 2)).rejects.toThrow(
      "expected folders of members other than 2, which is being replaced",
    );
    await expect(replace(3, folderOf(1), 1, 2)).rejects.toMatchObject({ code: "folder-in-use" });
    mkdirSync(path(root, "changed"));
    await withLaterList(folderOf(1), path(root, "changed"));
    await expect(
      replaceMember({ id: 3, folder: folderOf(3), from: [path(root, "changed"), folderOf(2)], log }),
    ).rejects.toThrow(
      /has a later list: give the member another id, with `coterie member add ID HOST:PORT --replaces 3`/,
    );
    mkdirSync(path(root, "empty"));
    await expect(
      replaceMember({ id: 3, folder: folderOf(3), from: [folderOf(1), path(root, "empty")], log }),
    ).rejects.toMatchObject({ code: "cannot-open-journal" });
    const [one, three] = (await start(members, [1, 3])) as [Member, Member];
    await vi.waitFor(() => expect(three.status().refusals).toHaveLength(1), PATIENCE);
    expect([...one.status().refusals, ...three.status().refusals].map(({ reason }) => reason)).toEqual([
      "lost-journal",
      "lost-journal",
    ]);
  });
});

const open = (id: number) =>
  openJournal(folderOf(id), { platform: realPlatform, owner: `member ${id} of tests`, log, onFailure() {} });

/** The slots of a member's journal, except its group. */
type Slots = Readonly<Record<string, readonly [shape: ShapeNode, ...records: readonly object[]]>>;

async function keep(id: number, slots: Slots, others = [0, 1, 2].filter((node) => node !== id)): Promise<void> {
  const journal = await open(id);
  const known = others.map((node) => ({ node, journal: `journal-${node}` }));
  const group = journal.slot<GroupRecord>("group", groupShape);
  group.append({ journal: `journal-${id}`, members: [0, 1, 2], others: known });
  journal.slot<MemberList>("members", memberListShape);
  for (const [name, [shape, ...records]] of Object.entries(slots)) {
    const slot = journal.slot<never>(name, shape);
    for (const record of records) slot.append(record as never);
  }
  await journal.close();
}

const replaceTwo = (): Promise<void> =>
  replaceMember({ id: 2, folder: folderOf(2), from: [folderOf(0), folderOf(1)], log });

/** Returns the records of one slot in the new folder. */
async function made<R>(name: string, shape: Shape<R>): Promise<readonly R[]> {
  const journal = await open(2);
  const { records } = journal.slot(name, shape);
  await journal.close();
  return records;
}

describe("a folder made from others", () => {
  test("has the longest log, does not vote in terms of possible earlier votes, and opens sessions in a new life", async () => {
    const record = variants<{ type: string; body: object }>(coordinationService().shapes.record ?? {});
    const log = (body: object) => ({ type: "log", body });
    const noops = (...terms: number[]) =>
      log({ type: "appended", entries: terms.map((term) => ({ type: "noop", term })) });
    const voted = (term: number) => log({ type: "voted", term, votedFor: 0 });
    await keep(0, { "service/log": [record, voted(2), noops(1, 1, 2), voted(5)] });
    const cut = log({ type: "truncated", lastIndex: 2 });
    await keep(1, { "service/log": [record, noops(1, 1, 1, 1), cut, voted(3), noops(3)] });
    const now = Date.now();
    await replaceTwo();
    expect(await made("service/log", record)).toEqual([
      ...[noops(1, 1, 1, 1), cut, voted(3), noops(3)],
      log({ type: "voted", term: 1_005, votedFor: 2 }),
    ]);
    const [life] = await made("service/session", record);
    expect(life).toMatchObject({ type: "session", body: { type: "life", run: Math.floor(now / 86_400_000) } });
    expect((life as { body: { life: number } }).body.life).toBeGreaterThanOrEqual(now);
  });

  test("needs others that have met all members, and its error names the remedy", async () => {
    await keep(0, {});
    await keep(1, {}, []);
    await expect(replaceTwo()).rejects.toThrow(
      `expected the journal in ${folderOf(1)} to record the other members, but it does not: member 1 has not met all of them yet. Stop all members, empty all their folders and start them together, as a new cluster`,
    );
  });
});
