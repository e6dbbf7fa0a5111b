// The pages of extensions. The server writes this file anew for the app that it serves.
export const extensions = [];
