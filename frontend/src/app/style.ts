// The style sheet, a part per part of the page; later parts refine earlier ones.
import account from "../features/diagnosis/account.css";
import checks from "../features/diagnosis/regimes.css";
import findings from "../features/diagnosis/findings.css";
import ground from "../shared/style/base.css";
import headline from "../features/diagnosis/headline.css";
import page from "../shared/style/page.css";
import runlist from "../features/run_list/run_list.css";
import tables from "../shared/style/tables.css";
import theme from "../shared/style/theme.css";

export const style = [theme, ground, tables, page, runlist, headline, account, findings, checks].join("\n");
