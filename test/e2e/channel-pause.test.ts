/**
 * Pauses a process while all members send. The others exclude it and continue. When it resumes, it comes back by
 * itself, and no promise of the channel is broken. COTERIE_SOAK=20 makes the pause 10 s long.
 *
 * @module-tag long
 */

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { broken } from "./channel-accounts.ts";
import { type ChannelMember, ChannelMembers, together } from "./channel-members.ts";

const PAUSE_MS = 500 * Number(process.env.COTERIE_SOAK ?? 6);
const ROOM = "room";
/** The number of messages in each burst. They wait while the group changes, and do not accumulate. */
const BURST = 20;
const EVERY_MS = 50;

let members: ChannelMembers;
afterEach(() => members.close());

/** Describes the views of the member, and when it was excluded. */
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
    // All are delivered during the pause: the senders waited only for the view without the paused member.
    await together([one, two], ROOM);
    for (const member of [one, two]) await member.settled();
    // A busy machine may change the group more than once.
    const without = viewsOf(one, "1,2");
    for (const member of [one, two]) expect(inViews(member, without)).not.toEqual([]);
    three.process.signal("SIGCONT");

    await members.lastRound(ROOM);
    expect(broken(members.runs, "total")).toEqual([]);
    expect(course(three)).toMatch(/1,2,3; (stalled; )?outside; (.*; )?1,2,3$/);
    expect(inViews(three, without)).toEqual([]);
  },
);

const viewsOf = (member: ChannelMember, group: string): readonly (number | null)[] =>
  member
    .all("view")
    .flatMap(({ state, members: those, view }) => (state === "member" && those.join() === group ? [view] : []));

const inViews = (member: ChannelMember, views: readonly (number | null)[]): string[] =>
  member.all("delivered").flatMap((message) => (views.includes(message.view) ? [message.payload] : []));
