import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MalformedBytes } from "../wire.ts";
import {
  emptyFrame,
  FRAME,
  frameSplitter,
  type Hello,
  helloCodec,
  OLDEST_WIRE_VERSION,
  refuseCodec,
  versionObjection,
  WIRE_VERSION,
  welcomeCodec,
} from "./frames.ts";

const MAX_FRAME_BYTES = 300;

interface Frame {
  readonly kind: number;
  readonly body: string;
}

/** Returns the frames in a stream made up of these chunks. */
function split(chunks: readonly Buffer[], goOn = (_frames: readonly Frame[]) => true): Frame[] {
  const frames: Frame[] = [];
  const feed = frameSplitter(
    () => MAX_FRAME_BYTES,
    (kind, { buffer, position, end }) => {
      frames.push({ kind, body: buffer.toString("hex", position, end) });
      return goOn(frames);
    },
  );
  for (const chunk of chunks) feed(chunk);
  return frames;
}

function frame(kind: number, body: Uint8Array): Buffer {
  const bytes = Buffer.alloc(5 + body.length);
  bytes.writeUInt32BE(1 + body.length, 0);
  bytes[4] = kind;
  bytes.set(body, 5);
  return bytes;
}

/** Cuts the stream at these offsets. */
function cutAt(stream: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [...new Set(places.map((place) => place % (stream.length + 1)))].sort((a, b) => a - b);
  return [0, ...cuts].map((from, i) => Buffer.from(stream.subarray(from, cuts[i] ?? stream.length)));
}

const anyFrames = fc.array(fc.tuple(fc.nat(255), fc.uint8Array({ maxLength: MAX_FRAME_BYTES - 1 })), { maxLength: 8 });
const asFrames = (list: readonly (readonly [number, Uint8Array])[]): Frame[] =>
  list.map(([kind, body]) => ({ kind, body: Buffer.from(body).toString("hex") }));

describe("a stream of frames", () => {
  test("gives the same frames for any division into chunks", () => {
    fc.assert(
      fc.property(anyFrames, fc.array(fc.nat(), { maxLength: 20 }), (sent, cuts) => {
        const stream = Buffer.concat(sent.map(([kind, body]) => frame(kind, body)));
        expect(split(cutAt(stream, cuts))).toEqual(asFrames(sent));
      }),
      { numRuns: 500 },
    );
  });

  test("gives the same frames byte by byte", () => {
    fc.assert(
      fc.property(anyFrames, (sent) => {
        const stream = Buffer.concat(sent.map(([kind, body]) => frame(kind, body)));
        expect(split([...stream].map((byte) => Buffer.of(byte)))).toEqual(asFrames(sent));
      }),
      { numRuns: 50 },
    );
  });

  test("stops when its reader returns false", () => {
    const stream = Buffer.concat([frame(1, Buffer.of(7)), frame(2, Buffer.of(8)), frame(3, Buffer.of(9))]);
    const untilSecond = (frames: readonly Frame[]): boolean => frames.length < 2;
    expect(split([stream, stream], untilSecond).map(({ kind }) => kind)).toEqual([1, 2]);
    expect(split(cutAt(stream, [9, 14]), untilSecond).map(({ kind }) => kind)).toEqual([1, 2]);
  });

  test.each([
    ["nothing, not even a kind", 0],
    ["one byte more than is allowed", MAX_FRAME_BYTES + 1],
    ["as much as four bytes can say", 2 ** 32 - 1],
  ])("with a frame length of %s is rejected before the frame has arrived", (_what, length) => {
    const header = Buffer.alloc(4);
    header.writeUInt32BE(length);
    expect(() => split([header])).toThrow(MalformedBytes);
    expect(() => split([frame(1, Buffer.of(1)), ...cutAt(header, [1, 3])])).toThrow(MalformedBytes);
  });

  test("may have frames up to the limit", () => {
    expect(split([frame(4, Buffer.alloc(MAX_FRAME_BYTES - 1))])).toHaveLength(1);
  });
});

describe("the bodies of the handshake", () => {
  const identity = { group: "0, 300", journal: "5f0c", isFounded: true, remembers: "" };
  const whole = {
    cluster: "Käfer",
    protocol: 2 ** 53 - 1,
    from: 0,
    to: 300,
    incarnation: 17,
    identity,
    address: "10.0.0.7:7100",
  };
  const hello: Hello = { ...whole, version: WIRE_VERSION, oldest: OLDEST_WIRE_VERSION };

  function read<T>(codec: { frame(body: T): Buffer; read(from: never): T }, bytes: Buffer): T {
    let body: T | undefined;
    frameSplitter(
      () => 4_096,
      (_kind, reader) => {
        body = codec.read(reader as never);
        return true;
      },
    )(bytes);
    return body as T;
  }

  test("arrive as they were sent", () => {
    expect(read(helloCodec, helloCodec.frame(hello))).toEqual(hello);
    expect(read(welcomeCodec, welcomeCodec.frame({ incarnation: 5, received: 0 }))).toEqual({
      incarnation: 5,
      received: 0,
    });
    const refusal = { reason: "duplicate-id", detail: "x".repeat(1_024), identity } as const;
    expect(read(refuseCodec, refuseCodec.frame(refusal))).toEqual(refusal);
  });

  function stretched(frame: Buffer, byBytes: number): Buffer {
    const changed = Buffer.concat([frame, Buffer.alloc(byBytes)]);
    changed.writeUInt32BE(changed.length - 4);
    return changed;
  }

  test("of a later version are read as far as this one knows them", () => {
    const newer = { ...hello, version: WIRE_VERSION + 1 };
    expect(read(helloCodec, stretched(helloCodec.frame(newer), 3))).toEqual(newer);
    expect(() => read(helloCodec, stretched(helloCodec.frame(hello), 3))).toThrow(MalformedBytes);
  });

  test.each([
    [2, 2, 2, 2, null],
    [2, 2, 3, 2, null],
    [3, 2, 2, 1, null],
    [2, 2, 3, 3, "expected wire version 2, got 3"],
    [3, 2, 1, 1, "expected wire version 2 to 3, got 1"],
  ])("negotiate a version if both have one in common: %i with minimum %i, and %i with minimum %i", (...each) => {
    const [version, oldest, otherVersion, otherOldest, objection] = each;
    const text = versionObjection(
      { ...hello, version, oldest },
      { ...hello, version: otherVersion, oldest: otherOldest },
    );
    expect(text?.split(":")[0] ?? null).toBe(objection);
  });

  test("carry a reason, even one of a later release", () => {
    const refusal = refuseCodec.frame({ reason: "malformed", detail: "as it says", identity });
    refusal[5] = 200;
    expect(read(refuseCodec, refusal)).toEqual({ reason: "unknown", detail: "as it says", identity });
  });

  test("carry a reason, even if a later release appends fields", () => {
    const refusal = { reason: "wrong-version", detail: "as it says", identity } as const;
    expect(read(refuseCodec, stretched(refuseCodec.frame(refusal), 3))).toEqual(refusal);
  });

  test("are rejected with trailing bytes", () => {
    const longer = Buffer.concat([welcomeCodec.frame({ incarnation: 5, received: 0 }), Buffer.of(0)]);
    longer.writeUInt32BE(longer.length - 4);
    expect(() => read(welcomeCodec, longer)).toThrow(MalformedBytes);
  });

  test("may be empty", () => {
    expect(split([emptyFrame(FRAME.probe)])).toEqual([{ kind: FRAME.probe, body: "" }]);
  });
});
