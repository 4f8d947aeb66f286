// What report.js uses of Observable Plot; `bundle.sh` shakes the rest off.
import { plot, areaY, line, dot, ruleX, ruleY, rect, text, axisX, axisY, gridX, gridY, tip, pointer } from "@observablehq/plot";
globalThis.Plot = { plot, areaY, line, dot, ruleX, ruleY, rect, text, axisX, axisY, gridX, gridY, tip, pointer };
