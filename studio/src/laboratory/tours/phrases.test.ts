/** What the laboratory says beside a tour: each phrase in each language, and each word of the components that a tour shows. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import { protocolNamed } from "../../../../src/protocols/index.ts";
import type { LossReason } from "../../../../src/trace/entry.ts";
import { lossWords } from "../../../../src/trace/log.ts";
import type { Picture } from "../../diagram/picture.ts";
import { faultIn, markIn, spoken } from "./drawn.ts";
import { phrasesIn } from "./phrases.ts";
import { type Language, languages, type Texts } from "./texts.ts";
import { tours } from "./tours.ts";

const fileOf = (language: string): Texts =>
  JSON.parse(readFileSync(new URL(`phrases/${language}.json`, import.meta.url), "utf8"));
const english = fileOf("en");
const others = (Object.keys(languages) as Language[]).filter((name) => name !== "en");
/** What is written alike: the sign of a unit. */
const ALIKE: ReadonlySet<string> = new Set(["es unit.ms", "pt unit.ms"]);
const placeholders = (text: string): string[] => (text.match(/\{[a-z]+\}/g) ?? []).toSorted();

/** Of the runs of all tours. */
const protocolsOfTours = tours
  .flatMap(({ runs }) => runs)
  .map(({ protocol, scenario }) => {
    if (scenario === undefined) return protocol ?? "";
    const text = readFileSync(new URL(`../../../../scenarios/${scenario}.yaml`, import.meta.url), "utf8");
    return /^protocol: (\S+)$/m.exec(text)?.[1] ?? "";
  });

test.each([...new Set(protocolsOfTours)])("the properties of %s and their claims are there", async (protocol) => {
  const phrases = await phrasesIn("en");
  const { properties } = protocolNamed(protocol).model();
  const texts = properties.flatMap(({ name, claim }) => [name, claim]);
  expect(texts.filter((text) => phrases.of(text) === null)).toEqual([]);
});

describe("phrases", () => {
  it("are told apart by their English text", () => {
    const texts = Object.values(english);
    expect(new Set(texts).size).toBe(texts.length);
  });

  it.each(others)(
    "are complete in %s: the same keys, the same placeholders, none empty, none left in English",
    (language) => {
      const own = fileOf(language);
      expect(Object.keys(own)).toEqual(Object.keys(english));
      for (const [key, text] of Object.entries(own)) {
        expect(text.trim(), key).not.toBe("");
        expect(placeholders(text), key).toEqual(placeholders(english[key] ?? ""));
        expect(text === english[key], key).toBe(ALIKE.has(`${language} ${key}`));
      }
    },
  );
});

test("every word that a component says by them is there", async () => {
  const phrases = await phrasesIn("en");
  const folders = [new URL("../", import.meta.url), new URL("../../diagram/topology/", import.meta.url)];
  const said = folders
    .flatMap((folder) => readdirSync(folder).map((file) => new URL(file, folder)))
    .filter(({ pathname }) => pathname.endsWith(".svelte"))
    .flatMap((file) => {
      const text = readFileSync(file, "utf8");
      return [...text.matchAll(/\bsay\((?:"([^"]+)"|`([^`]+)`)\)/g)].map(([, plain, made]) => plain ?? made ?? "");
    })
    .map((text) => text.replace(/^lost \(.*\)$/, "lost (cut)").replace(/^has the \$.*$/, "has the token"))
    .map((text) => text.replaceAll(/\$\{[^}]+\}/g, "7"));
  expect(said.length).toBeGreaterThan(25);
  expect(said.filter((text) => phrases.of(text) === null)).toEqual([]);
  const reasons: readonly LossReason[] = ["cut", "dropped", "overflow", "crashed", "down"];
  expect(reasons.filter((why) => phrases.of(`lost (${lossWords(why)})`) === null)).toEqual([]);
});

test("sentences are made of clauses, and lists of numbers are joined as in the language", async () => {
  const [es, pt, ru] = [await phrasesIn("es"), await phrasesIn("pt"), await phrasesIn("ru")];
  const sentence = "Nodes 4 and 5 hold an election, while 6 leads; 1, 2 and 7 are down.";
  expect(es.of(sentence)).toBe("Los nodos 4 y 5 celebran una elección, mientras lidera 6; 1, 2 y 7 están caídos.");
  expect(pt.of(sentence)).toBe("Os nós 4 e 5 fazem uma eleição, enquanto 6 lidera; 1, 2 e 7 estão em baixo.");
  expect(ru.of(sentence)).toBe("Узлы 4 и 5 проводят выборы, а лидер — 6; 1, 2 и 7 не работают.");
  expect(es.of("Node 0 has decided “attack”, but node 1 has decided “stay and wait”.")).toBe(
    "El nodo 0 ha decidido «attack», pero el nodo 1 ha decidido «stay and wait».",
  );
  expect(ru.of("1,377 entries that only keep coming are folded.")).toBe("Свёрнуты повторяющиеся записи: 1\u202f377.");
  expect(es.of("election: E2 liveness")).toBe("election: E2 vivacidad");
  expect(es.of("Nobody has ever said this.")).toBeNull();
});

test("faults, units and decimals are in the language, and what the algorithm calls its own is not", async () => {
  const [es, pt, ru] = [await phrasesIn("es"), await phrasesIn("pt"), await phrasesIn("ru")];
  const say = (phrases: typeof es) => (text: string) => phrases.of(text) ?? text;
  expect(faultIn("0 – 1: 7.5 % of the messages dropped, 10 to 50 ms of delay", say(es))).toBe(
    "0 – 1: 7,5 % de los mensajes descartados, de 10 a 50 ms de retardo",
  );
  expect(faultIn("split: 0, 1 | 2", say(ru))).toBe("разделение: 0, 1 | 2");
  expect(faultIn("split: only 2 hears both halves", say(pt))).toBe("divisão: só 2 ouve ambas as metades");
  expect(markIn("timeout: answer · deferring", say(es))).toBe("temporizador vencido: answer · deferring");
  expect(markIn("link to 1: 10 % of the messages dropped, 100 ms of delay", say(ru))).toBe(
    "связь с 1: 10 % сообщений теряется, задержка 100 мс",
  );
  expect(ru.of("12.5 ms")).toBe("12,5 мс");
  expect(ru.of("2’s request")).toBe("запрос от 2");
  expect(pt.of("1 waits for 3, which 0 has let in")).toBe("1 espera por 3, que 0 deixou entrar");
});

test("a request that is held back is named in the language, where its name has room", async () => {
  const ru = await phrasesIn("ru");
  const track = { key: "", node: 1, x1: 0, y: 0, lifeY: 0, ends: [], text: "2’s request", isSurplus: false, title: "" };
  const tracks = [200, 70].map((x2) => ({ ...track, x2 }));
  const picture = { spans: [], tracks, axis: { ticks: [] } } as unknown as Picture;
  expect(spoken(picture, (text) => ru.of(text) ?? text).tracks.map(({ text }) => text)).toEqual([
    "запрос от 2",
    "запрос от 2",
  ]);
});
