/** Steps for tests of channels with several members. */
import { expect } from "vitest";
import type { Member } from "../../src/cluster/services/api.ts";
import type { Channel, ChannelMessage, ChannelOptions } from "../../src/cluster/services/channel-api.ts";

/** Resolves once this many members are in the channel's view. */
export async function joined(room: Channel, count: number): Promise<void> {
  for await (const { members, state } of room.views()) if (state === "member" && members.length === count) return;
}

/** Resolves with the next `count` messages. */
export async function next<T>(messages: AsyncIterator<ChannelMessage<T>>, count: number): Promise<ChannelMessage<T>[]> {
  const found: ChannelMessage<T>[] = [];
  while (found.length < count) found.push((await messages.next()).value as ChannelMessage<T>);
  return found;
}

/**
 * Sends a hundred messages from each of three members. Expects all members to deliver every message once, and in one
 * order if the options promise that.
 */
export async function everybodyGetsEverything(members: readonly Member[], options: ChannelOptions): Promise<void> {
  const rooms = members.map((member) => member.channel<string>("room", options));
  await Promise.all(rooms.map((room) => joined(room, 3)));
  const readers = rooms.map((room) => room.read());
  const sends = rooms.flatMap((room, index) =>
    Array.from({ length: 100 }, (_, number) => room.send(`${index + 1}: ${number}`)),
  );
  const ids = (await Promise.all(sends)).map(({ id }) => id);
  const heard = await Promise.all(readers.map((reader) => next(reader, 300)));
  for (const messages of heard) {
    expect(new Set(messages.map(({ id }) => id))).toEqual(new Set(ids));
    expect(new Set(messages.map(({ payload }) => payload)).size).toBe(300);
  }
  if (options.order.endsWith("total"))
    expect(new Set(heard.map((messages) => messages.map(({ id }) => id).join())).size).toBe(1);
}
