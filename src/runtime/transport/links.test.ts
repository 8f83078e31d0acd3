/** Checks both ends of a connection with scripted sockets, for behavior that is rare with real ones. */

import { Duplex } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { helloOf, messagesFrame } from "../../../test/network/caller.ts";
import { type Numbered, numbered, numberedShape } from "../../../test/network/transport-under-test.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { faultInjector } from "../fault-injector.ts";
import { createLog } from "../log.ts";
import { newCounts } from "../metrics.ts";
import { realPlatform } from "../platform/real.ts";
import { codecOf, Reader } from "../wire.ts";
import { Acceptor } from "./acceptor.ts";
import { ackCodec, emptyFrame, FRAME, frameSplitter, helloCodec, welcomeCodec } from "./frames.ts";
import { GroupIdentity } from "./identity.ts";
import { defaultLimits } from "./limits.ts";
import { OutgoingLink } from "./outgoing-link.ts";

/** A socket that collects its output in `written`. With `held`, writes signal backpressure. */
class ScriptedSocket extends Duplex {
  readonly remoteAddress = "192.0.2.1";
  readonly written: Buffer[] = [];
  held = false;
  #proceed: (() => void) | null = null;

  constructor() {
    super({ writableHighWaterMark: 1, allowHalfOpen: false });
    this.on("close", () => this.proceed());
  }
  setNoDelay(): this {
    return this;
  }
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.written.push(chunk);
    if (this.held) this.#proceed = done;
    else done();
  }
  proceed(): void {
    this.held = false;
    this.#proceed?.();
    this.#proceed = null;
  }
  say(bytes: Buffer): void {
    this.push(bytes);
  }
  kinds(): number[] {
    return this.frames().map(({ kind }) => kind);
  }
  frames(): { kind: number; body: Reader }[] {
    const frames: { kind: number; body: Reader }[] = [];
    const feed = frameSplitter(
      () => 2 ** 20,
      (kind, body) => frames.push({ kind, body: new Reader(body.buffer.subarray(body.position, body.end)) }) > 0,
    );
    feed(Buffer.concat(this.written));
    return frames;
  }
}

const groupIdentity = (): GroupIdentity => new GroupIdentity({ self: 0, members: [0, 1, 2], log: createLog(() => {}) });

function accepting() {
  const counts = newCounts();
  const received: number[] = [];
  const fatal: Error[] = [];
  const lines: string[] = [];
  const acceptor = new Acceptor<Numbered>({
    platform: realPlatform,
    self: helloOf(0, 0),
    identity: groupIdentity(),
    peers: [1],
    codec: codecOf(numberedShape),
    limits: defaultLimits,
    counts,
    log: createLog((_level, line) => lines.push(line)),
    deliver: (_from, { value }) => {
      if (value === 13) throw new Error("a handler failed");
      received.push(value);
    },
    onIncarnation: () => {},
    onFatal: (error) => fatal.push(error),
  });
  const socket = new ScriptedSocket();
  acceptor.accept(socket, null);
  socket.say(helloCodec.frame(helloOf(1, 0)));
  return { acceptor, socket, counts, received, fatal, lines };
}

describe("the accepting end", () => {
  test("eventually acknowledges to a peer that did not read for a while", async () => {
    const { acceptor, socket, received } = accepting();
    socket.held = true; // Backpressure starts with the welcome.
    for (let first = 1; first <= 5; first++) socket.say(messagesFrame(first));
    await vi.waitFor(() => expect(received).toEqual([1, 2, 3, 4, 5]), PATIENCE);
    await vi.waitFor(() => expect(socket.kinds()).toEqual([FRAME.welcome]), PATIENCE);
    await new Promise((resolve) => setTimeout(resolve, 50)); // Longer than the delay of an acknowledgement.
    expect(socket.kinds()).toEqual([FRAME.welcome]);
    socket.proceed();
    await vi.waitFor(() => expect(socket.kinds()).toEqual([FRAME.welcome, FRAME.ack]), PATIENCE);
    expect(ackCodec.read(socket.frames()[1]?.body as Reader)).toEqual({ received: 5 });
    acceptor.close();
  });

  test("accepts nothing from a connection that it has replaced", async () => {
    const { acceptor, socket, received } = accepting();
    socket.say(messagesFrame(1));
    await vi.waitFor(() => expect(received).toEqual([1]), PATIENCE);
    const next = new ScriptedSocket();
    acceptor.accept(next, null);
    next.say(helloCodec.frame(helloOf(1, 0)));
    await vi.waitFor(() => expect(next.kinds()).toEqual([FRAME.welcome]), PATIENCE);
    socket.emit("data", messagesFrame(2));
    expect(received).toEqual([1]);
    acceptor.close();
  });

  test("keeps a peer whose proof of life arrived while this process was paused", async () => {
    const { acceptor, socket } = accepting();
    await vi.waitFor(() => expect(socket.kinds()).toEqual([FRAME.welcome]), PATIENCE);
    const rival = new ScriptedSocket();
    acceptor.accept(rival, null);
    rival.say(helloCodec.frame(helloOf(1, 0, { incarnation: 2 })));
    await vi.waitFor(() => expect(socket.kinds()).toEqual([FRAME.welcome, FRAME.probe]), PATIENCE);
    const now = performance.now();
    const clock = vi.spyOn(performance, "now").mockReturnValue(now + 60_000);
    // Let the timeout check run before the proof of life arrives.
    await new Promise((resolve) => setTimeout(resolve, 30));
    socket.say(emptyFrame(FRAME.alive));
    clock.mockReturnValue(now + 60_001);
    await vi.waitFor(() => expect(rival.kinds()).toEqual([FRAME.refuse]), PATIENCE);
    clock.mockRestore();
    acceptor.close();
  });

  test("reports the failure of a handler, and does not blame the peer", async () => {
    const { acceptor, socket, counts, fatal, lines } = accepting();
    socket.say(messagesFrame(13));
    await vi.waitFor(() => expect(fatal.map(({ message }) => message)).toEqual(["a handler failed"]), PATIENCE);
    expect(counts.refused).toEqual({});
    expect(lines).toEqual([]);
    acceptor.close();
  });
});

function dialling({ outlives }: { outlives?: (message: Numbered) => boolean } = {}) {
  const sockets: ScriptedSocket[] = [];
  const lost: { first: number; last: number; why: string }[] = [];
  const fatal: Error[] = [];
  const counts = newCounts();
  const lines: string[] = [];
  const link = new OutgoingLink<Numbered>({
    platform: realPlatform,
    peer: 1,
    hello: helloOf(0, 1),
    identity: groupIdentity(),
    codec: codecOf(numberedShape),
    limits: defaultLimits,
    injector: faultInjector(realPlatform.random),
    counts,
    log: createLog((_level, line) => lines.push(line)),
    connect(onReady) {
      const socket = new ScriptedSocket();
      sockets.push(socket);
      socket.once("connect", onReady);
      return socket;
    },
    outlives,
    onLost: (first, last, why) => lost.push({ first, last, why }),
    onFatal: (error) => fatal.push(error),
  });
  link.open();
  const latest = (): ScriptedSocket => sockets.at(-1) as ScriptedSocket;
  const welcome = (incarnation: number, received = 0): void => {
    latest().emit("connect");
    latest().say(welcomeCodec.frame({ incarnation, received }));
  };
  return { link, sockets, latest, welcome, lost, fatal, counts, lines };
}

const refused = (): Error => Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
const values = (socket: ScriptedSocket): number[] =>
  socket
    .frames()
    .filter(({ kind }) => kind === FRAME.messages)
    .flatMap(({ body }) => {
      const found: number[] = [];
      for (body.natural(); body.position < body.end; ) found.push(codecOf<Numbered>(numberedShape).read(body).value);
      return found;
    });

describe("the dialing end", () => {
  test("sends messages first that were written before the link was open", async () => {
    const { link, latest, welcome } = dialling();
    link.send(numbered(1));
    await nextTurn();
    link.send(numbered(2, "x".repeat(3_000)));
    link.send(numbered(3));
    welcome(7);
    await vi.waitFor(() => expect(link.status).toBe("open"), PATIENCE);
    link.send(numbered(4));
    await nextTurn();
    await vi.waitFor(() => expect(values(latest())).toEqual([1, 2, 3, 4]), PATIENCE);
    link.close();
  });

  test("fills one frame during backpressure", async () => {
    const { link, latest, welcome } = dialling();
    welcome(7);
    await vi.waitFor(() => expect(link.status).toBe("open"), PATIENCE);
    latest().held = true;
    for (let value = 1; value <= 50; value++) {
      link.send(numbered(value));
      await nextTurn();
    }
    latest().proceed();
    await vi.waitFor(() => expect(values(latest())).toHaveLength(50), PATIENCE);
    expect(
      latest()
        .kinds()
        .filter((kind) => kind === FRAME.messages),
    ).toHaveLength(2);
    link.close();
  });

  test("keeps its messages when connections are refused: only another run of the process shows that one has ended", async () => {
    const { link, sockets, latest, lost, counts, lines, welcome } = dialling();
    welcome(7);
    await vi.waitFor(() => expect(link.status).toBe("open"), PATIENCE);
    link.send(numbered(1));
    await nextTurn();
    latest().destroy();
    for (const [dials, value] of [
      [2, 2],
      [3, 3],
    ] as const) {
      await vi.waitFor(() => expect(sockets).toHaveLength(dials), PATIENCE);
      latest().destroy(refused());
      link.send(numbered(value));
    }
    await vi.waitFor(() => expect(sockets).toHaveLength(4), PATIENCE);
    welcome(7);
    await vi.waitFor(() => expect(values(latest())).toEqual([1, 2, 3]), PATIENCE);
    expect([lost, counts.lost, lines]).toEqual([[], {}, []]);
    link.close();
  });

  test("ignores a late welcome from a process when its successor has called since the dial", async () => {
    const { link, sockets, latest, lost, welcome } = dialling();
    welcome(7);
    await vi.waitFor(() => expect(link.status).toBe("open"), PATIENCE);
    latest().destroy();
    await vi.waitFor(() => expect(sockets).toHaveLength(2), PATIENCE); // Process 7 accepts this connection, then dies.
    link.noteIncarnation(8);
    link.send(numbered(1));
    welcome(7);
    await vi.waitFor(() => expect(sockets).toHaveLength(3), PATIENCE);
    welcome(8);
    await vi.waitFor(() => expect(values(latest())).toEqual([1]), PATIENCE);
    expect(lost).toEqual([]);
    link.close();
  });

  test("reports exactly the messages for a process that has ended as lost", async () => {
    const { link, latest, lost, counts, welcome } = dialling();
    welcome(7);
    await vi.waitFor(() => expect(link.status).toBe("open"), PATIENCE);
    for (const value of [1, 2, 3]) link.send(numbered(value));
    await nextTurn();
    latest().say(ackCodec.frame({ received: 2 })); // It acknowledges part of a frame, as after a refusal.
    await nextTurn();
    link.noteIncarnation(8);
    expect(lost).toEqual([{ first: 3, last: 3, why: "crashed" }]);
    expect(counts.lost).toEqual({ crashed: 1 });
    welcome(8);
    link.send(numbered(4));
    await vi.waitFor(() => expect(values(latest())).toEqual([4]), PATIENCE);
    link.close();
  });

  test("also reports them if the next run of the process answers a dial before it calls", async () => {
    const { link, sockets, latest, lost, welcome } = dialling();
    welcome(7);
    await vi.waitFor(() => expect(link.status).toBe("open"), PATIENCE);
    for (const value of [1, 2, 3]) link.send(numbered(value));
    await nextTurn();
    latest().destroy();
    await vi.waitFor(() => expect(sockets).toHaveLength(2), PATIENCE);
    expect(lost).toEqual([]);
    welcome(8);
    await vi.waitFor(() => expect(lost).toEqual([{ first: 1, last: 3, why: "crashed" }]), PATIENCE);
    link.send(numbered(4));
    await vi.waitFor(() => expect(values(latest())).toEqual([4]), PATIENCE);
    link.close();
  });

  test("carries messages for any run over to the next run, because others may have known that run before this link", async () => {
    const { link, latest, lost, welcome } = dialling({ outlives: ({ value }) => value > 10 });
    welcome(7);
    await vi.waitFor(() => expect(link.status).toBe("open"), PATIENCE);
    for (const value of [11, 2, 12, 3]) link.send(numbered(value));
    await nextTurn();
    latest().say(ackCodec.frame({ received: 1 }));
    await nextTurn();
    link.send(numbered(13)); // Process 7 has ended, but this end does not know that yet.
    link.noteIncarnation(8);
    expect(lost).toEqual([{ first: 2, last: 5, why: "crashed" }]);
    welcome(8);
    link.send(numbered(14));
    await vi.waitFor(() => expect(values(latest())).toEqual([12, 13, 14]), PATIENCE);
    link.close();
  });

  test.each([
    ["acknowledges messages that were never sent", ackCodec.frame({ received: 9 })],
    ["sends messages the wrong way", messagesFrame(1)],
    ["welcomes twice", welcomeCodec.frame({ incarnation: 7, received: 0 })],
    ["sends a frame too long for an answer", Buffer.from([0, 1, 0, 0, FRAME.ack])],
  ])("leaves a peer that %s, and keeps its messages", async (_what, bytes) => {
    const { link, latest, welcome, counts, lines, lost } = dialling();
    welcome(7);
    await vi.waitFor(() => expect(link.status).toBe("open"), PATIENCE);
    link.send(numbered(1));
    await nextTurn();
    latest().say(bytes);
    await vi.waitFor(() => expect(counts.refused).toEqual({ malformed: 1 }), PATIENCE);
    expect(lines).toEqual([expect.stringMatching(/^node 1 sent an invalid reply: /)]);
    await vi.waitFor(() => expect(link.status).toBe("dialing"), PATIENCE);
    welcome(7);
    await vi.waitFor(() => expect(values(latest())).toEqual([1]), PATIENCE);
    expect(lost).toEqual([]);
    link.close();
  });

  test("proves that it is alive, but not to a peer that keeps probing without reading", async () => {
    const { link, latest, welcome } = dialling();
    welcome(7);
    await vi.waitFor(() => expect(link.status).toBe("open"), PATIENCE);
    latest().say(emptyFrame(FRAME.probe));
    await vi.waitFor(() => expect(latest().kinds()).toEqual([FRAME.hello, FRAME.alive]), PATIENCE);
    latest().held = true;
    for (let i = 0; i < 1_000; i++) latest().say(emptyFrame(FRAME.probe));
    await nextTurn();
    expect(latest().writableLength).toBeLessThan(100);
    link.close();
  });

  test("ignores bytes from a closed connection", async () => {
    const { link, sockets, welcome, lost } = dialling();
    welcome(7);
    await vi.waitFor(() => expect(link.status).toBe("open"), PATIENCE);
    link.noteIncarnation(8);
    expect(sockets).toHaveLength(2);
    link.send(numbered(1));
    sockets[0]?.emit("data", ackCodec.frame({ received: 1 }));
    sockets[0]?.emit("drain");
    expect(link.queuedBytes).toBeGreaterThan(0);
    expect(lost).toEqual([]);
    link.close();
  });
});
