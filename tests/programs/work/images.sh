/usr/bin/convert -size 900x900 -seed 1 plasma:red-blue -rotate 33 -blur 0x3 -resize 500x500 ppm:- | cksum
/usr/bin/convert -size 700x700 gradient: -wave 20x90 -emboss 2 ppm:- | cksum
