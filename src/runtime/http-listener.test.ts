import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { authority } from "../../test/network/certificates.ts";
import { closedAfterEach } from "../../test/network/closing.ts";
import { PATIENCE } from "../../test/patience.ts";
import { cannotListen } from "./cannot-listen.ts";
import { type HttpListener, type HttpListenerOptions, httpListener } from "./http-listener.ts";

describe("a listener for HTTP", () => {
  const closing = closedAfterEach();

  async function listener(given: Partial<HttpListenerOptions> = {}): Promise<HttpListener> {
    const address = { host: "127.0.0.1", port: 0 };
    const fetch = (): Response => new Response("hello");
    const usual = { address, what: "for a test", fetch, tls: null, maxConnections: 8, headersMs: 100 };
    return closing(await httpListener({ ...usual, ...given }));
  }

  /** Connects, sends this text, and then sends nothing else. */
  async function caller({ url }: HttpListener, said: string): Promise<Socket> {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    closing({ close: () => socket.destroy() });
    socket.on("error", () => {});
    await once(socket, "connect");
    socket.resume();
    socket.write(said);
    return socket;
  }

  it.each([
    ["nothing", ""],
    ["half a request", "GET / HTTP/1.1\r\nhost: a"],
  ])("closes a connection that sends %s", async (_what, said) => {
    const full = await listener({ maxConnections: 1 });
    const silent = await caller(full, said);
    await once(silent, "close");
    await vi.waitFor(async () => expect(await (await fetch(full.url)).text()).toBe("hello"), PATIENCE);
  });

  it("closes a connection without a handshake if TLS is required", async () => {
    const { ca, cert, key } = await (await authority("pages")).issue("localhost");
    await once(await caller(await listener({ tls: { ca, cert, key } }), ""), "close");
  });

  it("allows a response to take longer than a request", async () => {
    const slow: HttpListener = await listener({
      headersMs: 500, // A busy machine may take a while to read the request.
      async fetch() {
        await once(await caller(slow, ""), "close"); // By then, a later caller that sent nothing has timed out.
        return new Response("at last");
      },
    });
    expect(await (await fetch(slow.url)).text()).toBe("at last");
  });

  it("says so if the machine does not have the address", async () => {
    const elsewhere = listener({ address: { host: "203.0.113.1", port: 0 } });
    await expect(elsewhere).rejects.toMatchObject({
      code: "cannot-listen",
      message: "cannot listen on 203.0.113.1:0 for a test: this machine has no address 203.0.113.1: choose another",
    });
    const cause = Object.assign(new Error("no"), { code: "EADDRNOTAVAIL" });
    expect(cannotListen({ host: "203.0.113.1", port: 7_100 }, "", cause).message).toBe(
      "cannot listen on 203.0.113.1:7100: this machine has no address 203.0.113.1: set listen, or check the member's id",
    );
  });

  it("names the address, its purpose and the remedy if it cannot listen", async () => {
    const { port } = new URL((await listener()).url);
    const second = listener({ address: { host: "127.0.0.1", port: Number(port) } });
    await expect(second).rejects.toMatchObject({
      code: "cannot-listen",
      message: `cannot listen on 127.0.0.1:${port} for a test: the address is in use: stop the program that listens there, or choose another`,
    });
  });
});
