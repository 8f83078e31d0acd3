/** What the pages of the site do beyond being read: theme, search, runs in place of their pictures, copying of code. */
import "../../studio/src/page.css";
import "./site.css";
import { colourSource, enableCopying, enableScrolling } from "./blocks.ts";
import { enableReading } from "./reading.ts";
import { enableRuns } from "./runs.ts";
import { enableSearch } from "./search-dialog.ts";
import { enableThemes } from "./theme.ts";

enableThemes();
enableSearch();
enableReading();
enableRuns();
enableCopying();
enableScrolling();
void colourSource();
