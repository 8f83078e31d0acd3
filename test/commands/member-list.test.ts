/** `coterie member list` where some endpoints fail. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "../network/free-ports.ts";
import { coterie } from "./run-here.ts";

const words = "no majority of the members is heard of";
const server = createServer((_request, response) => {
  response.writeHead(503, { "content-type": "application/json" }).end(JSON.stringify({ error: words, code: "x" }));
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => void server.close());

test("what a member answered is said, wherever it stands among endpoints at which nobody is", async () => {
  const url = (port: number | undefined): string => `http://127.0.0.1:${port}`;
  const [before, behind] = await freePorts(2);
  const member = url((server.address() as AddressInfo).port);
  const said = async (...endpoints: string[]) =>
    (await coterie("member", "list", "--endpoints", endpoints.join(","))).stderr;
  expect(await said(member, url(behind))).toBe(`coterie: ${words}\n`);
  expect(await said(url(before), member)).toBe(`coterie: ${words}\n`);
  expect(await said(url(before), url(behind))).toBe(
    `coterie: ${url(behind)}/v1/members does not answer: ECONNREFUSED\n`,
  );
});
