/** The cursor of a run: a step, selected by the user or advanced during playback. −1 is before the first step. */

const STEP_MS = 600;

export class Cursor {
  step = $state(-1);
  last = $state(-1);
  plays = $state(false);
  /** Where Shift with an arrow key moves the cursor: to causes and effects. */
  along: { back(step: number): number; on(step: number): number } | null = null;
  /** Returns whether the page already shows the state at the current step. Playback waits for it. */
  isShown: () => boolean = () => true;
  #timer: ReturnType<typeof setInterval> | undefined;

  begin(count: number, step: number): void {
    this.pause();
    this.last = count - 1;
    this.step = clamp(step, this.last);
  }

  go(step: number): void {
    this.pause();
    this.step = clamp(step, this.last);
  }

  pause(): void {
    clearInterval(this.#timer);
    this.plays = false;
  }

  toggle(): void {
    if (this.plays) return this.pause();
    if (this.step >= this.last) this.step = -1;
    this.plays = true;
    this.#timer = setInterval(() => {
      if (!this.isShown()) return;
      this.step = clamp(this.step + 1, this.last);
      if (this.step >= this.last) this.pause();
    }, STEP_MS);
  }

  /** Handles the arrow keys, Home, End and Space, unless the focused element uses the key itself. */
  onkey(event: KeyboardEvent): void {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const taken = event.key === " " ? "input, select, textarea, button, summary, a" : "input, select, textarea";
    if (target instanceof HTMLElement && target.closest(taken) !== null) return;
    const { along } = this;
    const isAlong = event.shiftKey && along !== null && this.step >= 0;
    const moves: Readonly<Record<string, () => void>> = {
      ArrowRight: () => this.go(isAlong ? along.on(this.step) : this.step + 1),
      ArrowLeft: () => this.go(isAlong ? along.back(this.step) : this.step - 1),
      Home: () => this.go(-1),
      End: () => this.go(this.last),
      " ": () => this.toggle(),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  }
}

const clamp = (step: number, last: number): number => Math.max(-1, Math.min(step, last));
