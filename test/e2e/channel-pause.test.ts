/**
 * A process is paused while all send. The others leave it out and continue. After it resumes, it comes back by itself, and
 * no promise of the channel has been broken. COTERIE_SOAK=20 makes the pause 10 s long.
 *
 * @module-tag long
 */

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { broken } from "./channel-accounts.ts";
import { type ChannelMember, ChannelMembers, together } from "./channel-members.ts";

const PAUSE_MS = 500 * Number(process.env.COTERIE_SOAK ?? 6);
const ROOM = "room";
/** The messages of each burst. They wait while the group changes, and do not pile up. */
const BURST = 20;
const EVERY_MS = 50;

let members: ChannelMembers;
afterEach(() => members.close());

/** The members of its views, and when it was left out. */
function course(member: ChannelMember): string {
  const said = member.all("view").map(({ members: those, state }) => (state === "member" ? those.join() : state));
  return said.filter((word) => word !== "blocked").join("; ");
}

test.each(["tcp", "udp"] as const)(
  "over %s, it is left out by the others and comes back by itself",
  async (transport) => {
    members = await ChannelMembers.of(3);
    const [one, two, three] = (await members.startAll()) as [ChannelMember, ChannelMember, ChannelMember];
    for (const member of members.up) member.order({ do: "open", name: ROOM, options: { order: "total", transport } });
    if (transport === "udp") await members.allMulticast(ROOM);
    else await together(members.up, ROOM);

    for (const member of members.up) members.send(member, ROOM, 500);
    three.process.signal("SIGSTOP");
    for (const began = performance.now(); performance.now() - began < PAUSE_MS; await sleep(EVERY_MS))
      for (const member of [one, two]) members.send(member, ROOM, BURST);
    // Completely during the pause: the senders waited only for the view without it.
    await together([one, two], ROOM);
    for (const member of [one, two]) await member.settled();
    const without = one.all("view").findLast(({ state }) => state === "member")?.view as number;
    for (const member of [one, two]) expect(inView(member, without)).not.toEqual([]);
    three.process.signal("SIGCONT");

    await members.lastRound(ROOM);
    expect(broken(members.runs, "total")).toEqual([]);
    expect(course(three)).toMatch(/1,2,3; (stalled; )?outside; (.*; )?1,2,3$/);
    expect(inView(three, without)).toEqual([]);
  },
);

const inView = (member: ChannelMember, view: number): string[] =>
  member.all("delivered").flatMap((message) => (message.view === view ? [message.payload] : []));
