// The style sheet, a part per part of the page; later parts refine earlier ones.
import account from "./account.css";
import checks from "./checks.css";
import findings from "./findings.css";
import ground from "./ground.css";
import headline from "./headline.css";
import page from "./page.css";
import runlist from "./runlist.css";
import tables from "./tables.css";
import theme from "./theme.css";

export const style = [theme, ground, tables, page, runlist, headline, account, findings, checks].join("\n");
