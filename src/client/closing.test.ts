import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { memberWithClients } from "../../test/network/member-with-clients.ts";
import { connect } from "./node.ts";

test("closing reports itself first, and does not wait for work that never ends", async () => {
  const { member, url, folder } = await memberWithClients();
  const client = await connect({ endpoints: [url] });
  const signals: string[] = [];
  client.signal.addEventListener("abort", () => signals.push("client"));
  let begun = (): void => {};
  const working = new Promise<void>((resolve) => (begun = resolve));
  const led = client
    .election("e")
    .lead((leadership) => {
      leadership.signal.addEventListener("abort", () => signals.push("leadership"));
      begun();
      return new Promise(() => {});
    })
    .catch((error: unknown) => error);
  await working;
  await client.close();
  expect(signals.toSorted()).toEqual(["client", "leadership"]);
  await expect(client.map("m").get("a")).rejects.toThrow(/closed/);
  await member.election("e").lead(() => {}); // The closed client's leadership has ended.
  await Promise.race([led, member.leave()]);
  rmSync(folder, { recursive: true, force: true });
});
