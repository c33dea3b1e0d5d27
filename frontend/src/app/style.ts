// The style sheet of the first screen. The order matters: later parts refine earlier ones.
import account from "../features/diagnosis/account.css";
import findings from "../features/diagnosis/findings.css";
import headline from "../features/diagnosis/headline.css";
import review from "../features/diagnosis/review.css";
import runList from "../features/run_list/run_list.css";
import base from "../shared/style/base.css";
import page from "../shared/style/page.css";
import tables from "../shared/style/tables.css";
import theme from "../shared/style/theme.css";

export const style = [theme, base, tables, page, runList, headline, account, findings, review].join("\n");
