/** Checks the output of `coterie up` for people. */
import { afterEach, expect, test } from "vitest";
import { Coterie, endAll, until } from "./cluster-under-test.ts";

afterEach(endAll);

test("correct hints for its ports, cut and healed links, and the leader of each node in a split", {
  tags: ["long"],
}, async () => {
  const up = new Coterie("up", "--nodes", "4", "--port", "0");
  await until("it is ready", () => up.stdout.includes("Ctrl-C"), up);
  const [, admin] = /Studio {2}(http:\S+)/.exec(up.stdout) as unknown as [string, string];
  expect(up.stdout).toContain(`npx coterie status --admin ${admin} `);
  expect(up.stdout).toMatch(/npx coterie up --restart --port 0 +next time: restart\s+members\s+that\s+crash/);

  const act = (body: object): Promise<Response> =>
    fetch(`${admin}/api/act`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const says = (words: string) => until(words, () => up.stdout.includes(words), up);
  await act({ type: "cut", nodes: [0, 1] });
  await says("  the link between 0 and 1 is cut\n");
  await act({ type: "mend", nodes: [0, 1] });
  await says("  the link between 0 and 1 is repaired\n");
  await act({ type: "split", groups: [[0, 1, 2]] });
  await says("  the network is split: 0, 1 and 2 | 3\n");
  await says("  no agreement: 0, 1 and 2 follow 2; 3 follows 3\n");
  await act({ type: "heal" });
  await says("  all links work, and no message is dropped or delayed\n");
  await says("  ★ node 3 leads, and 0, 1 and 2 follow\n");
  await act({ type: "link-conditions", dropRate: 0.1, delayMs: [1, 2] });
  await says("  10 % of messages are dropped, and the others are delayed by 1 to 2 ms\n");
  up.signal("SIGTERM");
  expect((await up.finished).code).toBe(0);
});
