import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { freePorts } from "../../test/network/free-ports.ts";
import { PATIENCE } from "../../test/patience.ts";
import type { Protocol, Vocabulary } from "../core/protocol.ts";
import { type Raft, raft } from "../protocols/consensus/raft/raft.ts";
import { extendedBully } from "../protocols/election/bully/extended-bully.ts";
import { type HostedNode, type HostingOptions, host } from "./runtime.ts";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** Starts three nodes in this process. */
async function three<V extends Vocabulary>(make: () => Protocol<V>, options: Partial<HostingOptions<V>> = {}) {
  const ports = await freePorts(3);
  const members = Object.fromEntries(ports.map((port, at) => [at + 1, `127.0.0.1:${port}`]));
  const open = async (id: number): Promise<HostedNode<V>> => {
    const node = await host<V>(make(), { id, members, ...options });
    stops.push(() => node.stop());
    return node;
  };
  return { nodes: await Promise.all([1, 2, 3].map(open)), open };
}

describe("host()", () => {
  test("runs a protocol, with commands, events and a readable state", async () => {
    const events: string[] = [];
    const { nodes } = await three(extendedBully, { onEvent: ({ type }) => void events.push(type) });
    nodes[0]?.command({ type: "call" });
    await vi.waitFor(() => expect(nodes.map(({ view }) => view.leader)).toEqual([3, 3, 3]), PATIENCE);
    expect(events).toContain("elected");
    expect(() => nodes[0]?.command({ type: "unknown" } as never)).toThrow("expected command");
    const copy = nodes[0]?.state as { leader?: unknown };
    copy.leader = null;
    expect(nodes[0]?.view.leader).toBe(3);
  });

  test("journals persisted records, and continues from there", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hosted-"));
    stops.push(() => Promise.resolve(rmSync(folder, { recursive: true })));
    const { nodes, open } = await three<Raft>(raft, { dataDir: join(folder, "{id}") });
    await vi.waitFor(() => expect(nodes.some(({ view }) => view.role === "leader")).toBe(true), PATIENCE);
    const term = Math.max(...nodes.map(({ state }) => state.term));
    await nodes[0]?.stop();
    const again = await open(1);
    expect(again.state.term).toBeGreaterThanOrEqual(term);
    await vi.waitFor(() => expect(again.view.leader).not.toBe(null), PATIENCE);
  });

  test.each([
    [{ id: 4, members: { 1: "127.0.0.1:7101" } }, "expected id of host() to be one of 1, got 4"],
    [{ id: 1, members: { 1: "nowhere" } }, 'expected members.1 of host() to be host:port, got "nowhere"'],
    [{ id: 1, members: { 1: "10.0.0.1:7101" } }, "expected tls of host()"],
  ])("rejects %j", async (options, message) => {
    await expect(host(extendedBully(), options)).rejects.toThrow(message);
  });

  test("a protocol that persists records needs a folder", async () => {
    await expect(host(raft(), { id: 1, members: { 1: "127.0.0.1:7101" } })).rejects.toThrow("expected a directory");
  });
});
