/** Checks the error of `connect()` if no connection to a member succeeds: one sentence for each cause. */
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { createServer as createPlainServer } from "node:net";
import { afterAll, expect, test } from "vitest";
import { connect } from "../../src/client/node.ts";
import { issue, makeAuthority } from "../../src/cluster/certificates.ts";
import { freePorts } from "./free-ports.ts";

const DAY_MS = 86_400_000;
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

/** Starts listening, and resolves with the port. */
async function listening<S extends Server>(server: S): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const authority = await makeAuthority("clients", Date.now());
const stranger = await makeAuthority("others", Date.now());

/** Starts a server with a certificate for that name, issued `days` days ago, and resolves with its port. */
async function certified(name = "127.0.0.1", days = 0): Promise<number> {
  const { cert, key } = await issue(authority, [name], 2, Date.now() - days * DAY_MS);
  return listening(createSecureServer({ cert, key }));
}

const answering = (): Promise<number> => listening(createServer((_, response) => response.writeHead(404).end()));

const NO_AUTHORITY =
  "that member's certificate is not signed by a known authority: set ca to the certificate of the authority that signed it (UNABLE_TO_VERIFY_LEAF_SIGNATURE)";

test.concurrent.each<[string, "http" | "https", () => Promise<number>, string, string?]>([
  [
    "nobody listens",
    "http",
    async () => (await freePorts(1))[0] as number,
    "the connection was refused: nothing listens at this address (ECONNREFUSED)",
  ],
  [
    "the certificate has expired",
    "https",
    () => certified("127.0.0.1", 10),
    "that member's certificate has expired: replace the file (coterie cert ID --renew makes a new one); the running member will reload it (CERT_HAS_EXPIRED)",
  ],
  [
    "the certificate is not valid yet",
    "https",
    () => certified("127.0.0.1", -10),
    "that member's certificate is not valid yet: correct the clocks on the two machines (CERT_NOT_YET_VALID)",
  ],
  ["the certificate is of another authority", "https", certified, NO_AUTHORITY, stranger.cert],
  ["no authority was given", "https", certified, NO_AUTHORITY, ""],
  [
    "the certificate has another name",
    "https",
    () => certified("node-1"),
    "that member's certificate does not include the name used here: create a certificate with this name, or use a name that it includes (Hostname/IP does not match certificate's altnames: IP: 127.0.0.1 is not in the cert's list:)",
  ],
  [
    "it speaks no TLS",
    "https",
    answering,
    "the server does not speak TLS: if it is a member, begin its URL with http (EPROTO)",
  ],
  [
    "it speaks TLS alone",
    "http",
    certified,
    "the connection broke: if that port has TLS, begin its URL with https (ECONNRESET)",
  ],
  ["it serves something else by HTTP", "http", answering, "the server does not accept clients (HTTP status 404)"],
  [
    "it speaks no HTTP",
    "http",
    () => listening(createPlainServer((socket) => void socket.on("error", () => {}).end("hello\n"))),
    "the server does not speak HTTP (HPE_INVALID_CONSTANT)",
  ],
  [
    "it says nothing",
    "http",
    () => listening(createPlainServer((socket) => void socket.on("error", () => {}))),
    "no answer within 2000 ms",
  ],
])("%s", async (_cause, scheme, serve, reason, ca = authority.cert) => {
  const endpoint = `${scheme}://127.0.0.1:${await serve()}`;
  const tls = scheme === "http" || ca === "" ? {} : { ca };
  await expect(connect({ endpoints: [endpoint], tls, timeoutMs: 3_000 })).rejects.toMatchObject({
    code: "no-endpoint",
    phase: "never-sent",
    message: `none of ${endpoint} accepted this client within 3000 ms: ${reason}`,
  });
});
