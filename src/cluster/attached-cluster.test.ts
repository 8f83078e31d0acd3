/** Checks the studio with members that run elsewhere: three members of `join()`, in this process. */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { freePorts } from "../../test/network/free-ports.ts";
import { type Cluster, cluster, startAll } from "../../test/network/joined.ts";
import { PATIENCE } from "../../test/patience.ts";
import { joined } from "../../test/services/channel-members.ts";
import { recordingHeader } from "../experiment/recording.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { nameOf } from "../trace/log.ts";
import { AttachedCluster } from "./attached-cluster.ts";
import { record } from "./local/recorder.ts";
import type { Member } from "./services/api.ts";

let group: Cluster;
let members: Member[];
let urls: string[];
let attached: AttachedCluster;

beforeAll(async () => {
  const ports = await freePorts(3);
  group = await cluster(3, { cluster: "reports", faultInjector: true });
  members = await Promise.all(ports.map((port, index) => group.start(index + 1, { admin: `127.0.0.1:${port}` })));
  urls = members.map(({ admin }) => admin as string);
  attached = await AttachedCluster.to(urls, () => null);
  await Promise.all(members.map((member) => member.ready()));
});
afterAll(async () => {
  await attached.close();
  await group.close();
});

const entries = (): TraceEntry[] => attached.trace.lines.map((line) => JSON.parse(line) as TraceEntry);
const events = (): string[] =>
  entries().flatMap((entry) => (entry.kind === "event" ? [`${entry.node} ${nameOf(entry.event).full}`] : []));

describe("members of join()", () => {
  test("the leader of the log is the leader at every member", async () => {
    await vi.waitFor(() => {
      const leader = members[0]?.status().leader; // If this process is paused, the leader may change.
      expect(leader).not.toBeNull();
      expect(attached.picture.nodes.map(({ view }) => view?.leader)).toEqual([leader, leader, leader]);
    }, PATIENCE);
    expect(attached.picture).toMatchObject({
      name: "reports",
      protocol: "services",
      isAttached: true,
      takesFaults: true,
    });
    expect(attached.picture.nodes).toMatchObject([{ id: 1, process: "running", commands: [] }, { id: 2 }, { id: 3 }]);
  });

  test("events and messages of a channel have its name, and each message has both ends", async () => {
    const rooms = members.map((member) => member.channel<string>("room", { order: "none" }));
    await Promise.all(rooms.map((room) => joined(room, 3)));
    await rooms[0]?.send("hello");
    const named = (): string[] => events().filter((event) => event.startsWith("1 channel.room."));
    await vi.waitFor(() => expect(named()).toContain("1 channel.room.delivered"), PATIENCE);
    // Each member reports its own steps, so the receiver may report a message before the sender.
    const idsOf = (kind: "send" | "receive"): string[] =>
      entries().flatMap((entry) =>
        entry.kind === kind && nameOf(entry.message).full.startsWith("channel.room.") ? [entry.id] : [],
      );
    const received = idsOf("receive");
    await vi.waitFor(() => expect(idsOf("send")).toEqual(expect.arrayContaining(received)), PATIENCE);
    expect(received.length).toBeGreaterThan(0);
    await Promise.all(rooms.map((room) => room.close()));
  });

  test("links are cut and mended, and messages are lost meanwhile", async () => {
    // A member that is slow to answer rejects an action, so retry it.
    await vi.waitFor(() => attached.act({ type: "cut", nodes: [1, 2] }), PATIENCE);
    expect(attached.picture.network.cuts).toEqual([
      [1, 2],
      [2, 1],
    ]);
    await vi.waitFor(
      () => expect(entries().some((entry) => entry.kind === "lost" && entry.why === "cut")).toBe(true),
      PATIENCE,
    );
    // A different member may have reported its loss first.
    const faults = (): string[] => entries().flatMap((entry) => (entry.kind === "fault" ? [entry.what] : []));
    await vi.waitFor(() => expect(faults()).toContain("link to 2 cut"), PATIENCE);
    await vi.waitFor(() => attached.act({ type: "heal" }), PATIENCE);
    expect(attached.picture.network.cuts).toEqual([]);
  });

  test("cannot be killed from here", async () => {
    await expect(attached.act({ type: "kill", node: 2 })).rejects.toThrow("this studio did not start member 2");
    await expect(attached.act({ type: "cut", nodes: [1, 9] })).rejects.toThrow(
      "expected the node to be one of 1, 2, 3, got 9",
    );
    await expect(attached.act({ type: "command", node: 1, command: "election.call" })).rejects.toThrow(
      "expected no command",
    );
  });

  test("a recording has a header and the members' entries", async () => {
    const file = path(mkdtempSync(path(tmpdir(), "coterie-attached-")), "run.jsonl");
    await attached.act({ type: "cut", nodes: [1, 2] }); // The recording starts with the existing cuts.
    const other = await AttachedCluster.to(urls.slice(0, 2), ({ protocol }, nodes) =>
      record({
        file,
        force: false,
        header: recordingHeader(protocol, nodes),
        onFailure: (error) => expect.unreachable(error.message),
      }),
    );
    await vi.waitFor(() => expect(readFileSync(file, "utf8").split("\n").length).toBeGreaterThan(4), PATIENCE);
    await other.close();
    expect(readFileSync(file, "utf8")).toMatch(/^\{"kind":"trace".*"nodes":\[1,2\]/);
    const [, first, second] = readFileSync(file, "utf8").split("\n");
    expect([first, second].map((line) => JSON.parse(line ?? ""))).toMatchObject([
      { node: 1, kind: "fault", what: "link to 2 cut" },
      { node: 2, kind: "fault", what: "link to 1 cut" },
    ]);
    await attached.act({ type: "heal" });
  });

  test("a member that has left is shown as exited", async () => {
    await members[2]?.leave();
    await vi.waitFor(
      () => expect(attached.picture.nodes[2]).toMatchObject({ process: "exited", exit: "does not answer" }),
      PATIENCE,
    );
  });

  test("a restarted member gets the current faults", async () => {
    await attached.act({ type: "cut", nodes: [1, 3] }).catch(() => {}); // Member 3 does not answer.
    const port = new URL(urls[2] as string).port;
    const again = await group.start(3, { admin: `127.0.0.1:${port}` });
    const cutTo = async () => ((await (await fetch(`${again.admin}/faults`)).json()) as { cutTo: number[] }).cutTo;
    expect(attached.picture.network.cuts).toContainEqual([3, 1]);
    await vi.waitFor(async () => expect(await cutTo()).toEqual([1]), PATIENCE);
    await attached.act({ type: "heal" });
    expect(await cutTo()).toEqual([]);
  });
});

test("a server that is not a member of this cluster is rejected", async () => {
  await expect(AttachedCluster.to([urls[0] as string, urls[0] as string], () => null)).rejects.toThrow(
    "are both member 1",
  );
  const others = await cluster(2, { cluster: "bills" });
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  await expect(AttachedCluster.to([url], () => null)).rejects.toThrow("does not answer");
  const [alone] = await startAll({
    ...others,
    start: (id) => others.start(id, id === 1 ? { admin: `127.0.0.1:${port}` } : {}),
  });
  await expect(AttachedCluster.to([urls[0] as string, alone?.admin as string], () => null)).rejects.toThrow(
    "to be a member of cluster reports with services",
  );
  await others.close();
});
