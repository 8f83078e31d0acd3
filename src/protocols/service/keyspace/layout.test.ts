import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesOfText, textOfBytes } from "./byte-text.ts";
import { counterKey, MAX_KEY_BYTES, MAX_NAME_BYTES, mapInterval, mapKey, placeOf } from "./layout.ts";
import { covers } from "./store.ts";

const bytes = (text: string): string => Buffer.from(text, "utf8").toString("latin1");
const units = fc.string({ unit: fc.integer({ min: 0, max: 0xff_ff }).map((unit) => String.fromCharCode(unit)) });
const text = fc.oneof(fc.string(), fc.string({ unit: "binary" }), units);

describe("the bytes of a text", () => {
  it("are its UTF-8", () => {
    for (const each of ["", "plain", "ünï", "日本", "😀", "\0\u007f\u0080\u07ff\u0800\uffff"])
      expect([bytesOfText(each), textOfBytes(bytes(each))]).toEqual([bytes(each), each]);
  });

  it("are different for each text, even if it contains half of a surrogate pair", () => {
    fc.assert(
      fc.property(text, (each) => {
        expect(textOfBytes(bytesOfText(each))).toBe(each);
      }),
    );
  });

  it("are in the order of the code points", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
        const order = Buffer.compare(Buffer.from(a), Buffer.from(b));
        expect(bytesOfText(a) < bytesOfText(b)).toBe(order < 0);
      }),
    );
  });

  it.each([
    "\xff",
    "\x80",
    "\xc3",
    "\xc3(",
    "\xc0\xaf",
    "\xe0\x80\xaf",
    "\xf4\x90\x80\x80",
    "\xed\xa0\xbd\xed\xb8\x80",
  ])("cannot be %j", (malformed) => {
    expect(textOfBytes(malformed)).toBeNull();
  });
});

describe("the key of a map's key", () => {
  it("names the map and the key", () => {
    expect(mapKey("settings", "x")).toBe("map/settings/x");
    expect(mapKey("a/b", "c/d")).toBe("map/a%2Fb/c/d");
    expect(mapKey("100%", "")).toBe("map/100%25/");
    expect(mapKey("ünï", "ö")).toBe(bytes("map/ünï/ö"));
    expect(mapKey("coterie/endpoints", "1")).toBe("coterie/map/endpoints/1");
    expect(counterKey("a/b")).toBe("counter/a/b");
    expect(counterKey("coterie/clients")).toBe("coterie/counter/clients");
  });

  it("is unambiguous", () => {
    const any = fc.oneof(text, fc.string({ unit: fc.constantFrom("/", "%", "2", "F", "5", "f", "ü") }));
    const name = any.filter((each) => each !== "");
    fc.assert(
      fc.property(name, name, (map, key) => {
        expect(placeOf(mapKey(map, key))).toEqual({ map, key });
        expect(covers(mapInterval(map), mapKey(map, key))).toBe(true);
      }),
    );
  });

  it("belongs to a map only if its name and key are within the limits", () => {
    const [name, key] = ["/".repeat(MAX_NAME_BYTES), "k".repeat(MAX_KEY_BYTES)];
    expect(placeOf(mapKey(name, key))).toEqual({ map: name, key });
    expect([placeOf(mapKey(`${name}/`, "k")), placeOf(mapKey("m", `${key}k`))]).toEqual([null, null]);
  });

  it.each([
    "map/settings",
    "maps/a/b",
    "map/a%2fb/c",
    "map/50%/c",
    "map/\xff/c",
    "map/a/\xff",
    "map//x",
    "map/m/",
    "counter/a/b",
    "x",
  ])("cannot be %j", (key) => {
    expect(placeOf(key)).toBeNull();
  });
});
