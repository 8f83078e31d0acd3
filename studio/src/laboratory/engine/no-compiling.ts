/** A content security policy may forbid compiling text, so zod is configured before its first schema is created. */
import { z } from "zod";

z.config({ jitless: true });
