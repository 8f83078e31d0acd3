/** A member that has lost its folder gets a new one out of the others', which promises what any of them has promised. */

import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { freePorts } from "../../test/network/free-ports.ts";
import { PATIENCE } from "../../test/patience.ts";
import { type MemberList, memberListShape } from "../protocols/service/coordination-service/member-words.ts";
import { openJournal } from "../runtime/journal/disk-journal.ts";
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

/** Three that have met, have granted a lock and a leadership and had a channel; then all stop, and the third's folder is gone. */
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

/** A copy of a folder whose member has heard that the list has changed. */
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
  test("takes part again with a folder made of the others', and all tokens go on growing", {
    tags: ["long"],
  }, async () => {
    const { members, highest, led } = await bereft();
    await replaceMember({ id: 3, folder: folderOf(3), from: [folderOf(1), folderOf(2)], log });
    const [one, three] = (await start(members, [1, 3])) as [Member, Member]; // A majority only with the new folder.
    expect(await three.mutex("invoice").use(({ token }) => token)).toBeGreaterThan(highest);
    expect(await three.election("report").lead(({ token }) => token)).toBeGreaterThan(led);
    expect([one.status().refusals, three.status().refusals]).toEqual([[], []]);
    const room = three.channel<string>("room", { order: "total" });
    await vi.waitFor(() => expect(room.status.members).toContain(3), PATIENCE);
  });

  test("is refused until then, and what is not enough is refused with a sentence", async () => {
    const { members } = await bereft();
    const replace = (id: number, folder: string, ...from: number[]): Promise<void> =>
      replaceMember({ id, folder, from: from.map(folderOf), log });
    await expect(replace(3, folderOf(3), 1)).rejects.toThrow(
      "expected the folders of 2 of the 3 members, got those of 1: fewer may not know what member 3 has promised. Where more folders are lost than that, save what is left with `coterie snapshot save FILE --from FOLDER`, and found a new cluster from it",
    );
    await expect(replace(3, folderOf(3), 1, 1)).rejects.toMatchObject({ code: "cannot-replace" });
    await expect(replace(4, folderOf(4), 1, 2)).rejects.toThrow("expected one of the members 1, 2, 3, got 4");
    await expect(replace(2, path(root, "other"), 1, 2)).rejects.toThrow(
      "expected folders of other members than 2, which is to be replaced",
    );
    await expect(replace(3, folderOf(1), 1, 2)).rejects.toMatchObject({ code: "folder-in-use" });
    mkdirSync(path(root, "changed"));
    await withLaterList(folderOf(1), path(root, "changed"));
    await expect(
      replaceMember({ id: 3, folder: folderOf(3), from: [path(root, "changed"), folderOf(2)], log }),
    ).rejects.toThrow(
      /knows a later one: give the member another id, with `coterie member add ID HOST:PORT --replaces 3`/,
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
