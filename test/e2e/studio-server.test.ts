/** Checks the server of `coterie up`: the feed and the actions of the studio page, and its access rules. */
import { type IncomingMessage, request } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ClusterPicture, FeedEvent } from "../../src/cluster/feed.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";
import { ClusterUnderTest, endAll, until } from "./cluster-under-test.ts";

let cluster: ClusterUnderTest;
beforeAll(async () => {
  cluster = await ClusterUnderTest.up("--nodes", "3", "--name", "shown");
});
afterAll(endAll);

/** A page that reads the feed: the latest picture, and all entries so far. */
class Listener {
  picture!: ClusterPicture;
  readonly entries: TraceEntry[] = [];
  readonly types: FeedEvent["type"][] = [];
  readonly #leaving = new AbortController();

  async listen(): Promise<void> {
    const { body, headers } = await fetch(`${cluster.ready.admin}/api/feed`, { signal: this.#leaving.signal });
    expect(headers.get("content-type")).toBe("text/event-stream");
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      const events = text.split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) if (event.startsWith("data: ")) this.#hear(JSON.parse(event.slice(6)) as FeedEvent);
    }
  }

  #hear(event: FeedEvent): void {
    this.types.push(event.type);
    if (event.type !== "trace") this.picture = event.cluster;
    if (event.type !== "cluster") this.entries.push(...event.entries);
  }

  leave(): void {
    this.#leaving.abort();
  }
}

async function listener(): Promise<Listener> {
  const page = new Listener();
  page.listen().catch(() => {}); // The feed ends when the page closes.
  await until("the page has its snapshot", () => page.picture, cluster);
  return page;
}

async function refusal(act: object): Promise<string> {
  const response = await cluster.act(act);
  expect(response.status).toBe(400);
  return ((await response.json()) as { error: string }).error;
}

describe("the feed", () => {
  test("begins with a snapshot, and reports every later change and message", async () => {
    const page = await listener();
    expect(page.types[0]).toBe("snapshot");
    expect(page.picture).toMatchObject({
      name: "shown",
      protocol: "bully",
      restarts: false,
      network: { cuts: [], dropRate: 0, delayMs: [0, 0] },
    });
    expect(page.picture.nodes.map(({ process }) => process)).toEqual(Array(3).fill("running"));
    await until("2 leads", () => page.picture.nodes.every(({ view }) => view?.leader === 2), cluster);
    expect(page.picture.nodes[0]?.commands).toContain("election.call");

    expect(await (await cluster.act({ type: "kill", node: 2 })).json()).toEqual({});
    await until("1 leads", () => page.picture.nodes[0]?.view?.leader === 1, cluster);
    // The exit of 2 may be reported after the election of 1.
    await until("2 has exited", () => page.picture.nodes[2]?.process === "exited", cluster);
    expect(page.picture.nodes[2]).toMatchObject({ exit: "killed by SIGKILL", pid: null, view: null });
    const told = (what: string, is: (entry: TraceEntry) => boolean) =>
      until(what, () => page.entries.find(is), cluster);
    const crash = await told("its crash is reported, after its last messages", ({ kind }) => kind === "crash");
    expect(crash).toEqual({ at: expect.any(Number), node: 2, kind: "crash" });
    const sent = await told(
      "1 has sent something to 0",
      (entry) => entry.kind === "send" && entry.node === 1 && entry.to === 0,
    );
    const { id } = sent as { id: string };
    await until(
      "what 1 has sent arrives at 0",
      () => page.entries.some((entry) => entry.kind === "receive" && entry.node === 0 && entry.id === id),
      cluster,
    );

    await cluster.act({ type: "restart", node: 2 });
    await until("2 leads again", () => page.picture.nodes.every(({ view }) => view?.leader === 2), cluster);
    expect(page.entries.filter(({ node, kind }) => node === 2 && kind === "start").length).toBeGreaterThan(0);
    page.leave();
  });
});

describe("actions", () => {
  test("pause and resume", async () => {
    expect((await cluster.act({ type: "pause", node: 0 })).status).toBe(200);
    expect((await cluster.status()).nodes[0]).toMatchObject({ process: "paused", alive: false });
    expect(await refusal({ type: "command", node: 0, command: "election.call" })).toBe(
      "expected node 0 to be running, but it is paused",
    );
    expect((await cluster.act({ type: "resume", node: 0 })).status).toBe(200);
    await cluster.agreed(2, [0, 1, 2]);
  });

  test("split, and heal; the network outlives a restart", async () => {
    const page = await listener();
    const atFirst = cluster.events.length;
    expect((await cluster.act({ type: "split", groups: [[0, 1]] })).status).toBe(200);
    await until("1 leads in the part without 2", () => page.picture.nodes[0]?.view?.leader === 1, cluster);
    expect(page.picture.network.cuts).toEqual([
      [0, 2],
      [1, 2],
      [2, 0],
      [2, 1],
    ]);
    await until("2 leads by itself", () => page.picture.nodes[2]?.view?.leader === 2, cluster);
    expect(await cluster.event("network", atFirst)).toMatchObject({
      act: { type: "split", groups: [[0, 1]] },
      cuts: page.picture.network.cuts,
    });
    await until("both sides learn of it", () =>
      cluster.events.some((event) => event.event === "disagreement" && event.opinions.length === 2),
    );

    const before = cluster.events.length;
    await cluster.act({ type: "kill", node: 1 });
    await until("its exit is detected", async () => (await cluster.act({ type: "restart", node: 1 })).ok, cluster);
    const { node } = await cluster.event("started", before);
    expect(node).toBe(1);
    const faults = await until("the new process has received a message", async () => {
      const told = (await (await fetch(`${page.picture.nodes[1]?.admin}/faults`)).json()) as { cutTo: number[] };
      return told.cutTo.length > 0 ? told : null;
    });
    expect(faults).toEqual({ cutTo: [2], dropRate: 0, delayMs: { min: 0, max: 0 } });

    expect((await cluster.act({ type: "heal" })).status).toBe(200);
    await cluster.agreed(2, [0, 1, 2]);
    await until("the page shows no cuts", () => page.picture.network.cuts.length === 0, cluster);
    page.leave();
  });

  test("link conditions, cut and heal show in the picture and reach the members", async () => {
    await cluster.act({ type: "link-conditions", dropRate: 0.01, delayMs: [1, 5] });
    await cluster.act({ type: "cut", nodes: [0, 1] });
    const { admin } = (await cluster.status()).nodes[0] as { admin: string };
    const hasHeard = async (cutTo: readonly number[]) => {
      const wanted = { cutTo, dropRate: 0.01, delayMs: { min: 1, max: 5 } };
      const isHeard = async () => isDeepStrictEqual(await (await fetch(`${admin}/faults`)).json(), wanted);
      await until(`node 0 has heard ${JSON.stringify(wanted)}`, isHeard, cluster);
    };
    await hasHeard([1]);
    await cluster.act({ type: "mend", nodes: [1, 0] });
    await hasHeard([]);
    await cluster.act({ type: "heal" });
  });

  test("a command reaches the protocol", async () => {
    const page = await listener();
    await cluster.command(0, "election.call");
    await until(
      "its trace shows it",
      () => page.entries.some(({ node, kind }) => node === 0 && kind === "command"),
      cluster,
    );
    page.leave();
  });

  test.each([
    [{ type: "kill", node: 9 }, "expected the node to be one of 0, 1, 2, got 9"],
    [{ type: "restart", node: 1 }, "expected node 1 to have exited, but it is running"],
    [{ type: "cut", nodes: [1, 1] }, "expected two different nodes, got 1 twice"],
    [{ type: "split", groups: [[0], [0]] }, "expected each node in one group, got node 0 in two"],
    [{ type: "link-conditions", dropRate: 2, delayMs: [0, 0] }, "expected dropRate to be a probability, got 2"],
    [
      { type: "link-conditions", dropRate: 0, delayMs: [5, 1] },
      "expected delayMs to be the smaller delay and then the greater, got [5,1]",
    ],
    [{ type: "kill" }, "expected node to be a node's id, got undefined"],
    [{ type: "kill", node: 1, now: true }, "expected now to be absent, got true"],
    [
      { type: "command", node: 0, command: "../x" },
      'expected command to be a command such as election.call, got "../x"',
    ],
    [
      { type: "dance" },
      'expected type to be an action such as kill, restart, pause, resume, cut, mend, split, heal, link-conditions or command, got "dance"',
    ],
  ])("%j is rejected with a sentence", async (act, sentence) => {
    expect(await refusal(act)).toBe(sentence);
  });

  test("a command that the protocol does not know is rejected with the protocol's message", async () => {
    expect(await refusal({ type: "command", node: 0, command: "election.win" })).toContain('got "win"');
  });
});

/** Sends a request as a hostile page could. `fetch` sets Host and Origin itself. */
function send(method: string, path: string, headers: Record<string, string>, body = ""): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const call = request(`${cluster.ready.admin}${path}`, { method, headers }, (response) =>
      resolve(response.resume()),
    );
    call.on("error", reject);
    call.end(body);
  });
}

describe("only programs and pages of this machine", () => {
  const json = { "content-type": "application/json" };
  const heal = JSON.stringify({ type: "heal" });

  test.each([
    ["a foreign host name that resolves to this machine", "GET", "/status", { host: "evil.example:7400" }, "", 403],
    ["our name with another port", "GET", "/status", { host: "127.0.0.1:80" }, "", 403],
    ["a page of another site", "POST", "/api/act", { ...json, origin: "http://evil.example" }, heal, 403],
    ["a page without a site", "POST", "/api/act", { ...json, origin: "null" }, heal, 403],
    ["a form", "POST", "/api/act", { "content-type": "text/plain" }, heal, 415],
    ["no content type", "POST", "/api/act", {}, heal, 415],
    ["too much", "POST", "/api/act", json, " ".repeat(70_000), 413],
    ["no JSON", "POST", "/api/act", json, "{", 400],
    ["a way out of the folder", "GET", "/..%2f..%2fpackage.json", {}, "", 404],
  ])("%s is rejected", async (_who, method, path, headers, body, status) => {
    expect((await send(method, path, headers, body)).statusCode).toBe(status);
  });

  test("our own page may act", async () => {
    expect((await send("POST", "/api/act", { ...json, origin: cluster.ready.admin }, heal)).statusCode).toBe(200);
  });

  test("pages may neither be framed nor load anything from elsewhere", async () => {
    const { headers } = await send("GET", "/status", {});
    expect(headers["content-security-policy"]).toContain("default-src 'self'");
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(headers["x-content-type-options"]).toBe("nosniff");
    expect(headers["referrer-policy"]).toBe("no-referrer");
  });
});

test("--no-studio serves the status and accepts actions, and nothing else", async () => {
  const quiet = await ClusterUnderTest.up("--nodes", "1", "--no-studio");
  expect(quiet.ready.studio).toBeNull();
  expect((await quiet.status()).nodes).toHaveLength(1);
  expect((await quiet.act({ type: "heal" })).status).toBe(200);
  expect((await fetch(`${quiet.ready.admin}/api/feed`)).status).toBe(404);
  expect((await fetch(quiet.ready.admin)).status).toBe(404);
});
