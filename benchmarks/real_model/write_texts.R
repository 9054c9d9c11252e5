# Write Jane Austen's six novels as NAME.txt: apt-get install r-cran-janeaustenr; Rscript write_texts.R FOLDER
library(janeaustenr)
folder <- commandArgs(trailingOnly = TRUE)[1]
for (name in c("northangerabbey", "persuasion", "prideprejudice", "emma", "mansfieldpark", "sensesensibility")) {
  writeLines(get(name), file.path(folder, paste0(name, ".txt")))
}
