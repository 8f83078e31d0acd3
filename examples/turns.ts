/**
 * A race over ten fields. Players move at the same time, so that none can see the others' moves first. Each chooses a
 * distance of 1, 2 or 3 fields. Players with the same choice do not move. Run it once for each of two to four players,
 * in separate terminals: `npx tsx examples/turns.ts --player 1 --players 3`, and again with 2 and 3. Type 1, 2 or 3.
 *
 * Then cheat: `--cheat wrong-reveal` (or look-ahead, silence, equivocation, replay) changes the messages of a player.
 * The others stop, and write a proof that anyone can verify: `coterie verify-proof FILE --keys 'turns-race/{id}.pub'`.
 */
import { generateKeyPairSync } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { cheating, cheats, type Lockstep, lockstep } from "coterie/protocols";
import { host, proofFile } from "coterie/runtime";

const GOAL = 10;
const FIRST_PORT = 7200;

const { values } = parseArgs({
  options: {
    player: { type: "string", default: "1" },
    players: { type: "string", default: "2" },
    /** The name of the game. Its keys are created in the folder turns-NAME, so each game is played once. */
    game: { type: "string", default: "race" },
    /** How long each player may take to choose, in seconds. */
    patience: { type: "string", default: "60" },
    cheat: { type: "string" },
    /** Whether to choose at random. */
    bot: { type: "boolean", default: false },
    port: { type: "string", default: String(FIRST_PORT) },
  },
});
const self = Number(values.player);
const players = Array.from({ length: Number(values.players) }, (_, at) => at + 1);
const cheat = cheats.find((each) => each === values.cheat);
const folder = `turns-${values.game}`;
const say = (text: string): void => console.log(text);
if (players.length < 2 || players.length > 4 || !players.includes(self))
  throw new Error("expected two to four players");
if (values.cheat !== undefined && cheat === undefined)
  throw new Error(`expected --cheat to be one of ${cheats.join(", ")}`);

const publicKey = (player: number): string => `${folder}/${player}.pub`;
makeKeys();
while (!players.every((player) => existsSync(publicKey(player)))) await new Promise((done) => setTimeout(done, 100));

const honest = lockstep({ game: values.game, echoes: true, resends: 9, resendMs: Number(values.patience) * 100 });
const node = await host(
  cheat === undefined ? honest : cheating(honest, cheat, (steps) => String((Number(steps) % 3) + 1)),
  {
    id: self,
    cluster: folder,
    members: Object.fromEntries(players.map((player) => [player, `127.0.0.1:${Number(values.port) + player}`])),
    keys: { own: `${folder}/{id}.key`, all: `${folder}/{id}.pub` },
    onEvent: hear,
  },
);

const fields = new Map(players.map((player) => [player, 0]));
const lines = createInterface({ input: process.stdin });
lines.on("line", choose);
choose(null);

/** Plays the number on a line, or the bot's choice. */
function choose(line: string | null): void {
  if (values.bot) return play(String(Math.ceil(Math.random() * 3)));
  if (line !== null && ["1", "2", "3"].includes(line.trim())) return play(line.trim());
  say("how far? 1, 2 or 3");
}

function play(steps: string): void {
  node.command({ type: "propose", value: steps });
}

function hear(event: Lockstep["event"]): void {
  if (event.type === "decided") return move(event);
  if (event.type === "stopped") return say(`turn ${event.turn}: nothing in time from ${event.missing.join(", ")}`);
  const file = `${folder}/proof-by-${self}-against-${event.player}.json`;
  const keys = Object.fromEntries(players.map((player) => [player, readFileSync(publicKey(player), "utf8")]));
  writeFileSync(file, proofFile({ game: values.game, keys, proof: event.proof }));
  say(`player ${event.player} has cheated: ${event.how}`);
  say(`the proof: coterie verify-proof ${file} --keys '${folder}/{id}.pub'`);
  end();
}

function move({ turn, actions }: Extract<Lockstep["event"], { type: "decided" }>): void {
  const chosen = Object.values(actions);
  for (const player of players) {
    const action = actions[player] ?? "";
    const isAlone = chosen.filter((other) => other === action).length === 1;
    const steps = isAlone && ["1", "2", "3"].includes(action) ? Number(action) : 0;
    fields.set(player, Math.min(GOAL, (fields.get(player) ?? 0) + steps));
  }
  say(`turn ${turn}: ${players.map((player) => `${player} chose ${actions[player]}`).join(", ")}`);
  for (const [player, field] of fields) say(`${player} ${".".repeat(field)}${player}${".".repeat(GOAL - field)}|`);
  const winners = players.filter((player) => fields.get(player) === GOAL);
  if (winners.length === 0) return choose(null);
  say(`won: ${winners.join(", ")}`);
  end();
}

/** Waits a moment, because others may still request missing messages. */
function end(): void {
  lines.close();
  setTimeout(() => void node.stop(), 1_000);
}

function makeKeys(): void {
  const own = `${folder}/${self}.key`;
  if (existsSync(own)) throw new Error(`the game ${values.game} has been played: name another with --game`);
  const keys = generateKeyPairSync("ed25519");
  mkdirSync(folder, { recursive: true });
  writeFileSync(own, keys.privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  const part = `${publicKey(self)}.part`;
  writeFileSync(part, keys.publicKey.export({ type: "spki", format: "pem" }));
  renameSync(part, publicKey(self)); // Other players read the file once it exists, so it must be complete by then.
}
