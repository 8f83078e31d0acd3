/** The state of the live page, which is kept up to date from the feed, and the user's actions. */
import { SvelteSet } from "svelte/reactivity";
import type { Act, ClusterPicture, FeedEvent } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import { Chronicle, KEPT_MS } from "../history/chronicle.ts";
import { EventLog } from "../history/event-log.ts";
import type { Line } from "../history/lines.ts";
import { type Connection, listen, request } from "./feed.ts";
import { Turns } from "./turns.ts";

/** How often old entries are removed. */
const TRIM_MS = 1_000;
const TOAST_MS = 6_000;
/** The minimum interval between updates. Faster ones could not be read. Moving parts move in every frame anyway. */
const REDRAW_MS = 120;
const LINES_MS = 300;
/** The maximum fraction of time spent on updating the text. Painting takes about the same amount again. */
const REDRAW_SHARE = 0.05;

export class Studio {
  connection = $state<Connection>("connecting");
  cluster = $state.raw<ClusterPicture | null>(null);
  lines = $state.raw<readonly Line[]>([]);
  /** Incremented on every update. Code that draws the chronicle reads it, so that it is run again. */
  revision = $state(0);
  complaint = $state<string | null>(null);
  /** The nodes selected for a cut or for one side of a split. */
  readonly selected = new SvelteSet<NodeId>();

  chronicle: Chronicle | null = null;
  /** While a user is studying the past, nothing after this moment is discarded. */
  studiedFrom = Infinity;
  /** Coordinates expensive drawing. */
  readonly turns = new Turns();

  #log = new EventLog();
  /** How far the server's clock is ahead of the page's clock. */
  #aheadMs = 0;
  #stoppedAt: number | null = null;
  #trimmedAt = 0;
  #redraw: number | null = null;
  #redrawnAt = 0;
  #redrawTookMs = 0;
  #areWordsOld = false;
  #linesAt = 0;
  #areLinesOld = false;
  #toast: ReturnType<typeof setTimeout> | undefined;

  /** Starts listening. Returns a function that stops listening. */
  open(): () => void {
    return listen({
      heard: (event) => this.#hear(event),
      connected: (connection) => {
        // Without updates, the present is unknown, so time stops at the last known moment.
        if (connection === "lost") this.#stoppedAt ??= this.now();
        else this.#stoppedAt = null;
        this.connection = connection;
      },
    });
  }

  /** Returns the current time on the server's clock, in milliseconds. */
  now(): number {
    return this.#stoppedAt ?? Date.now() + this.#aheadMs;
  }

  async act(act: Act): Promise<void> {
    const complaint = await request(act);
    if (complaint !== null) this.complain(complaint);
  }

  complain(complaint: string): void {
    this.complaint = complaint;
    clearTimeout(this.#toast);
    this.#toast = setTimeout(() => {
      this.complaint = null;
    }, TOAST_MS);
  }

  dismissComplaint(): void {
    this.complaint = null;
  }

  select(node: NodeId): void {
    if (!this.selected.delete(node)) this.selected.add(node);
  }

  /** Updates the lines again when it is their turn. */
  tellLinesAgain(): void {
    this.#areLinesOld = true;
    this.#scheduleRedraw();
  }

  #hear(event: FeedEvent): void {
    if (event.type === "snapshot") this.#begin(event);
    else if (this.chronicle === null || this.cluster === null) return;
    else if (event.type === "cluster") {
      this.chronicle.observe(event.cluster, this.cluster);
      this.#log.observe(event.cluster, this.cluster);
      this.cluster = event.cluster;
    } else {
      this.chronicle.add(event.entries);
      this.#log.add(event.entries, this.chronicle);
    }
    this.#trim();
    this.#outdate();
  }

  #begin({ cluster, networks, entries }: FeedEvent & { type: "snapshot" }): void {
    const inOrder = entries.toSorted((a, b) => a.at - b.at);
    this.#aheadMs = cluster.now - Date.now();
    this.chronicle = new Chronicle(cluster, inOrder, networks);
    const log = new EventLog();
    this.chronicle.onTurn = (kind, turn) => log.drop(kind, turn);
    log.add(inOrder, this.chronicle);
    log.recall(networks, cluster);
    this.#log = log;
    this.cluster = cluster;
  }

  #trim(): void {
    const now = this.now();
    if (now - this.#trimmedAt < TRIM_MS) return;
    this.#trimmedAt = now;
    this.chronicle?.forget(Math.min(now - KEPT_MS, this.studiedFrom));
  }

  #outdate(): void {
    this.#areWordsOld = true;
    this.#areLinesOld = true;
    this.#scheduleRedraw();
  }

  /** Redraws in the next frame. Hidden tabs do not get frames, so they do not redraw. */
  #scheduleRedraw(): void {
    this.#redraw ??= requestAnimationFrame((frame) => {
      this.#redraw = null;
      const began = performance.now();
      const wordsEveryMs = Math.max(REDRAW_MS, this.#redrawTookMs / REDRAW_SHARE);
      if (this.#areWordsOld && began - this.#redrawnAt >= wordsEveryMs && this.turns.take("words", frame))
        this.#redrawWords(began);
      if (this.#areLinesOld && began - this.#linesAt >= LINES_MS && this.turns.take("log", frame))
        this.#tellLines(began);
      if (this.#areWordsOld || this.#areLinesOld) this.#scheduleRedraw();
    });
  }

  #redrawWords(began: number): void {
    this.#areWordsOld = false;
    this.#redrawnAt = began;
    this.revision += 1;
    // Measure after the microtask for dependent drawing, which is already queued.
    queueMicrotask(() => {
      this.#redrawTookMs = performance.now() - began;
    });
  }

  #tellLines(began: number): void {
    this.#areLinesOld = false;
    this.#linesAt = began;
    this.lines = this.#log.lines;
  }
}
