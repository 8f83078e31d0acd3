import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { realPlatform } from "../../runtime/platform/real.ts";
import { ClientRoom, type Occupant } from "./client-room.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

class Connection implements Occupant {
  farewell: string | null = null;
  probes = 0;
  constructor(readonly room: ClientRoom) {
    room.enter(this);
  }

  refuse(code: string): void {
    this.farewell = code;
    this.room.leave(this);
  }

  probe(): void {
    this.probes += 1;
  }
}

const roomOf = () => {
  const counts = { connected: 0 };
  return { room: new ClientRoom(realPlatform, counts), counts };
};

describe("connections of clients", () => {
  it("are closed if they send no hello", async () => {
    const { room, counts } = roomOf();
    const [silent, client] = [new Connection(room), new Connection(room)];
    expect(room.admit(client)).toBe(true);
    expect(counts.connected).toBe(1);
    await vi.advanceTimersByTimeAsync(2_900);
    expect(silent.farewell).toBeNull();
    await vi.advanceTimersByTimeAsync(1_200);
    expect(silent.farewell).toBe("no-hello");
    expect(client.farewell).toBeNull();
  });

  it("are not displaced by connections without a hello: the oldest of those is refused", () => {
    const { room, counts } = roomOf();
    const clients = Array.from({ length: 1_000 }, () => new Connection(room)).filter((each) => room.admit(each));
    expect(clients).toHaveLength(1_000);
    const [first, ...others] = Array.from({ length: 501 }, () => new Connection(room));
    expect(first?.farewell).toBe("no-hello");
    expect(others.every(({ farewell }) => farewell === null)).toBe(true);
    const [one, ...rest] = others as [Connection, ...Connection[]];
    expect(room.admit(one)).toBe(false);
    expect(one.farewell).toBe("too-many-clients");
    expect(rest.every(({ farewell }) => farewell === null)).toBe(true);
    room.leave(clients[0] as Connection);
    expect(room.admit(rest[0] as Connection)).toBe(true);
    expect(counts.connected).toBe(1_000);
  });

  it("are closed after silence, and probed before", async () => {
    const { room, counts } = roomOf();
    const [gone, quiet, lively] = [new Connection(room), new Connection(room), new Connection(room)];
    for (const each of [gone, quiet, lively]) room.admit(each);
    for (let ms = 0; ms < 60_000; ms += 250) {
      await vi.advanceTimersByTimeAsync(250);
      room.note(lively);
      if (quiet.probes > 0) room.note(quiet); // A browser answers probes even if the page does nothing.
    }
    expect([gone, quiet, lively].map(({ farewell }) => farewell)).toEqual(["silent", null, null]);
    expect(gone.probes).toBeGreaterThan(0);
    expect(lively.probes).toBe(0);
    expect(counts.connected).toBe(2);
  });

  it("are kept while the member itself is paused", async () => {
    const { room } = roomOf();
    const [client, stranger] = [new Connection(room), new Connection(room)];
    room.admit(client);
    await vi.advanceTimersByTimeAsync(1_000);
    const away = vi.spyOn(realPlatform.clock, "now").mockReturnValue(realPlatform.clock.now() + 30_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([client.farewell, stranger.farewell]).toEqual([null, null]);
    away.mockRestore();
  });

  it("cost nothing without clients", () => {
    const { room } = roomOf();
    room.leave(new Connection(room));
    expect(vi.getTimerCount()).toBe(0);
  });
});
