/** Configures zod before its first schema is created, because a content security policy may forbid compiling text. */
import { z } from "zod";

z.config({ jitless: true });
