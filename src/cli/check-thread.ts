/** A thread of `coterie check`. */
import { answerTo, type CheckAnswer, type CheckProgress, type CheckTask } from "../experiment/explore.ts";
import { workInThread } from "./thread.ts";

workInThread<CheckTask, CheckProgress, CheckAnswer>((task, mayGoOn) =>
  answerTo(task, mayGoOn, process.memoryUsage.rss),
);
