{ sum[$2] += $1; line[NR % 1000] = line[NR % 1000] $1 } END { for (k in sum) t += sum[k]; print NR, t, length(line[7]) }
