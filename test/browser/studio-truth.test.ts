/**
 * Checks how the page presents events: in the order of their occurrence, and with the available commands.
 *
 * @module-tag long
 */

import { describe, expect, test } from "vitest";
import { noBrowser } from "./chromium.ts";
import { drawn } from "./drawn.ts";
import { StudioUnderTest } from "./studio-under-test.ts";

describe.skipIf(noBrowser !== null)("the studio reports events", () => {
  const studio = new StudioUnderTest();
  /** Returns the nodes named in log lines with these words. On a busy machine there may be several such lines. */
  const whoIn = (lines: string, words: string): string[] => {
    const found = [...lines.matchAll(new RegExp(`nodes? ([\\d, and]+) ${words}`, "g"))];
    return [...new Set(found.flatMap(([, nodes = ""]) => nodes.match(/\d/g) ?? []))].sort();
  };

  test("paxos takes proposals; a split leaves its span, also for a page that is opened later", async () => {
    const cluster = await studio.open(["--nodes", "3", "--protocol", "paxos"]);
    await studio.command(0, "Propose");
    await expect.poll(async () => whoIn(await studio.log(), "decides? greeting 1")).toEqual(["0", "1", "2"]);

    await cluster.act({ type: "split", groups: [[0, 1], [2]] });
    const network = async () => (await drawn(studio.page))?.network;
    await expect.poll(network).toContain("split: 0 and 1 | 2");
    await cluster.act({ type: "heal" });
    await studio.page.reload();
    await expect.poll(network).toContain("split: 0 and 1 | 2");
    await expect.poll(() => studio.log()).toMatch(/all links mended[\s\S]*the network is split: 0 and 1 \| 2/);
  });

  test("chang-roberts reports that no election has been called, until one is", async () => {
    await studio.open(["--nodes", "3", "--protocol", "chang-roberts"]);
    await expect.poll(() => studio.headline()).toMatch(/^No election has started yet\./);
    await studio.command(0, "Call an election");
    await expect.poll(() => studio.headline()).toMatch(/^Node 2 leads\./);
  });

  test.each([
    ["pbft", /\bview \d/],
    ["epoch-bully", /\bepoch \d/],
  ])("a node of %s names its term as the protocol does", async (protocol, words) => {
    await studio.open(["--nodes", "4", "--protocol", protocol]);
    const card = () => studio.page.getByTestId("node-1").innerText();
    await expect.poll(card).toMatch(words);
    expect(await card()).not.toMatch(/\bterm\b/);
  });

  test("maekawa draws its voting sets, and which node waits for which; an entry has its messages counted", async () => {
    const cluster = await studio.open(["--nodes", "3", "--protocol", "maekawa"]);
    await studio.page.waitForSelector('[data-topology="quorums"] .hull');
    await studio.command(0, "Request");
    // The node needs its own vote and the vote of the other node of its set: a request and a vote.
    await expect.poll(() => studio.page.getByTestId("work").innerText()).toBe("2 for the last entry, so far");
    await cluster.command(1, "mutex.enter");
    const topology = () => studio.page.locator(".topology[data-topology] svg").getAttribute("aria-label");
    await expect.poll(topology).toMatch(/1 waits for 0/);
    await studio.page.getByRole("button", { name: "node 0: inside" }).click();
    await studio.page.waitForSelector('[data-node="0"][aria-pressed="true"]');
  });

  test("token-ring draws its ring, with one token", async () => {
    await studio.open(["--nodes", "3", "--protocol", "token-ring"]);
    const token = () => studio.page.locator('[data-topology="ring"] .token').count();
    await expect.poll(token).toBe(1);
  });

  test("fifo counts deliveries", async () => {
    await studio.open(["--nodes", "3", "--protocol", "fifo"]);
    await expect.poll(() => studio.headline()).toMatch(/^Nothing is delivered yet\./);
    await studio.page.getByRole("button", { name: "Send command to node 0" }).click();
    await studio.page.getByRole("menuitem").first().click();
    await expect.poll(() => studio.headline()).toMatch(/^Each node has delivered 1 message\./);
  });

  test("a node resumes before others receive from it again", async () => {
    const cluster = await studio.open(["--nodes", "3", "--protocol", "heartbeat"]);
    await cluster.act({ type: "pause", node: 2 });
    // The newest line is first. A suspicion before the pause was a mistake, which late messages may still correct.
    const sinceThePause = async () => /[\s\S]*(?=node 2 was paused)/.exec(await studio.log())?.[0] ?? "";
    await expect.poll(async () => whoIn(await sinceThePause(), "suspects? node 2")).toEqual(["0", "1"]);
    await cluster.act({ type: "resume", node: 2 });
    await expect.poll(() => studio.log()).toMatch(/trusts? node 2 again[\s\S]*node 2 resumed/);
    const [after = "", before = ""] = (await studio.log()).split("node 2 resumed");
    expect(after).toMatch(/trusts? node 2 again/);
    // Messages from before the pause may be read late, so that the node is trusted and suspected again.
    expect(/(suspects?|trusts?) node 2/.exec(before)?.[1]).toMatch(/suspect/);
    expect(before).toMatch(/suspects? node 2[\s\S]*node 2 was paused/);
  });
});
