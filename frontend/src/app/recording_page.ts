// The page of a recording in a file of its own: opening on the overview does not need it.
import { lazyView } from "../shared/widgets/lazy_view";

export const RecordingPage = lazyView(async () => (await import("./recording")).RecordingPage);
